"""Commits wait for a replica to acknowledge them."""

from mydyno.diagnose.account import LATCH
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _waits(evidence: LoadEvidence) -> float | None:
    names = ("master", "source")
    found = [evidence.get(f"status.rpl_semi_sync_{name}_tx_wait_time") for name in names]
    return max((value * 1e-6 for value in found if value is not None), default=None)


LIMIT = Limit(
    "semi_sync",
    "semi-synchronous replication",
    (LATCH,),
    signs=(Sign("time in waits for a replica", _waits, 0.1, "s/s"),),
    most=lambda evidence: min(1.0, _waits(evidence) or 0.0),  # one waits for its group of commits
)
