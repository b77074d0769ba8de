"""Transactions are rolled back by deadlocks."""

from mydyno.diagnose.account import LATCH, ROW_LOCK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign


def _share(evidence: LoadEvidence) -> float | None:
    known = evidence.ratio("status.innodb_deadlocks", "status.com_commit")
    return (
        known if known is not None else evidence.ratio("innodb.lock_deadlocks", "status.com_commit")
    )


LIMIT = Limit(
    "deadlocks",
    "deadlocks",
    (ROW_LOCK, LATCH),
    signs=(Sign("deadlocks per commit", _share, 0.01, "ratio"),),
)
