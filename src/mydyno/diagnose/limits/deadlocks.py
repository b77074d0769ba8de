"""Transactions are rolled back by deadlocks."""

from itertools import product

from mydyno.diagnose.account import LATCH, ROW_LOCK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign

_DEADLOCKS = ("status.innodb_deadlocks", "innodb.lock_deadlocks")
_COMMITS = ("status.handler_commit", "status.com_commit")  # of each statement; of COMMIT alone


def _share(evidence: LoadEvidence) -> float | None:
    every = (evidence.ratio(*pair) for pair in product(_DEADLOCKS, _COMMITS))
    return next((known for known in every if known is not None), None)


LIMIT = Limit(
    "deadlocks",
    "deadlocks",
    (ROW_LOCK, LATCH),
    signs=(Sign("deadlocks per commit", _share, 0.01, "ratio"),),
)
