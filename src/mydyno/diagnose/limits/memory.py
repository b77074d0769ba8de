"""Memory is short: pages are swapped in, or read again after they were reclaimed."""

from mydyno.diagnose.account import FAULT, READ, UNKNOWN
from mydyno.diagnose.suspects import Limit, lasting, summed

_IN = ("vm.pswpin", "process.major_faults:mysqld")
_LONGEST_S = 0.01  # of a read from a disk

LIMIT = Limit(
    "memory",
    "memory",
    (FAULT, READ, UNKNOWN),
    signs=(summed("pages swapped in and major faults", _IN, 10.0, "/s"),),
    most=lasting(_LONGEST_S, *_IN),
)
