"""Memory is short: pages are swapped in, or read again after they were reclaimed."""

from mydyno.diagnose.account import FAULT, READ, UNKNOWN
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _in(evidence: LoadEvidence) -> float | None:
    return evidence.total("vm.pswpin", "process.major_faults:mysqld")


LIMIT = Limit(
    "memory",
    "memory",
    (FAULT, READ, UNKNOWN),
    signs=(Sign("pages swapped in and major faults", _in, 10.0, "/s"),),
)
