"""Transactions wait for room in the log buffer."""

from mydyno.diagnose.account import LATCH, LOG
from mydyno.diagnose.suspects import Limit, figure

LIMIT = Limit(
    "log_buffer",
    "the size of the log buffer",
    (LOG, LATCH),
    signs=(figure("status.innodb_log_waits", 0.1, "/s"),),
    doses=("mysqld.innodb_log_buffer_size",),
)
