"""Temporary tables and sorts are written to disk."""

from mydyno.diagnose.account import CPU, LATCH, TEMPORARY, WRITE
from mydyno.diagnose.suspects import Limit, share, summed

_MADE = ("status.created_tmp_disk_tables", "status.sort_merge_passes")

LIMIT = Limit(
    "temporary_tables",
    "temporary tables on disk",
    (TEMPORARY, WRITE, CPU),
    signs=(
        summed("temporary tables on disk and merges of sorts", _MADE, 5.0, "/s"),
        share(0.05, TEMPORARY, WRITE, CPU, LATCH),
    ),
    doses=("mysqld.tmp_table_size",),
)
