"""The buffer pool has no clean page: queries wait for pages to be written."""

from mydyno.diagnose.account import LATCH, READ, WRITE
from mydyno.diagnose.suspects import Limit, figure, share

LIMIT = Limit(
    "flushing",
    "flushing of dirty pages",
    (WRITE, LATCH, READ),
    signs=(
        figure("status.innodb_buffer_pool_wait_free", 1.0, "/s"),
        share(0.1, WRITE, LATCH, READ),
    ),
    doses=("mysqld.innodb_io_capacity",),
)
