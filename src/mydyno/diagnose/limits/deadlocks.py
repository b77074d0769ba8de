"""Transactions are rolled back by deadlocks."""

from itertools import product

from mydyno.diagnose.account import LATCH, ROW_LOCK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, costing

_DEADLOCKS = ("status.innodb_deadlocks", "innodb.lock_deadlocks")
_COMMITS = ("status.com_commit", "status.handler_commit")  # of COMMIT alone; of each statement


def _share(evidence: LoadEvidence) -> float | None:
    commits = _COMMITS if evidence.get(_COMMITS[0]) else _COMMITS[::-1]
    every = (evidence.ratio(*pair) for pair in product(_DEADLOCKS, commits))
    return next((known for known in every if known is not None), None)


# What one costs at most, in transactions: its own twice, and those that waited for it.
_COST = 4.0

LIMIT = Limit(
    "deadlocks",
    "deadlocks",
    (ROW_LOCK, LATCH),
    signs=(Sign("deadlocks per commit", _share, 0.01, "ratio"),),
    most=costing(_COST, _share),
)
