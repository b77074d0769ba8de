"""The kernel compacts memory for huge pages while queries wait."""

from mydyno.diagnose.account import CPU, FAULT
from mydyno.diagnose.suspects import Limit, figure, lasting

_STALLS = "vm.compact_stall"
_LONGEST_S = 0.01  # of a stall

LIMIT = Limit(
    "compaction",
    "compaction for huge pages",
    (FAULT, CPU),
    signs=(figure(_STALLS, 10.0, "/s"),),
    most=lasting(_LONGEST_S, _STALLS),
)
