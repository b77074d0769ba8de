"""Temporary tables and sorts are written to disk."""

from mydyno.diagnose.account import CPU, LATCH, TEMPORARY, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _made(evidence: LoadEvidence) -> float | None:
    return evidence.total("status.created_tmp_disk_tables", "status.sort_merge_passes")


LIMIT = Limit(
    "temporary_tables",
    "temporary tables on disk",
    (TEMPORARY, WRITE, CPU),
    signs=(
        Sign("temporary tables on disk and merges of sorts", _made, 5.0, "/s"),
        share(0.05, TEMPORARY, WRITE, CPU, LATCH),
    ),
    doses=("mysqld.tmp_table_size",),
)
