"""Transactions wait for room in the log buffer."""

from mydyno.diagnose.account import LATCH, LOG
from mydyno.diagnose.suspects import Limit, figure, lasting

_WAITS = "status.innodb_log_waits"
_LONGEST_S = 0.13  # of a wait: a disk of 125 MB/s writes a buffer of 16 MiB

LIMIT = Limit(
    "log_buffer",
    "the size of the log buffer",
    (LOG, LATCH),
    signs=(figure(_WAITS, 0.1, "/s"),),
    doses=("mysqld.innodb_log_buffer_size",),
    most=lasting(_LONGEST_S, _WAITS),
)
