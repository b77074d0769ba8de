"""Temporary tables and sorts are written to disk."""

from mydyno.diagnose.account import CPU, LATCH, TEMPORARY, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, costing, share, summed

# What one costs at most, in statements: 14 where MariaDB 10.11 did 1.9 times as many without.
_COST = 20.0
_MADE = ("status.created_tmp_disk_tables", "status.sort_merge_passes")


def _of_statements(evidence: LoadEvidence) -> float | None:
    made, statements = evidence.total(*_MADE), evidence.get("status.questions")
    return made / statements if made is not None and statements else None


LIMIT = Limit(
    "temporary_tables",
    "temporary tables on disk",
    (TEMPORARY, WRITE, CPU),
    signs=(
        summed("temporary tables on disk and merges of sorts", _MADE, 5.0, "/s"),
        Sign("the same for each statement", _of_statements, 0.01, "ratio"),
        share(0.05, TEMPORARY, WRITE, CPU, LATCH),
    ),
    doses=("mysqld.tmp_table_size",),
    most=costing(_COST, _of_statements),
)
