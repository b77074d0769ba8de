"""Commits wait for the disk's flush."""

from mydyno.diagnose.account import LATCH, LOG
from mydyno.diagnose.suspects import Limit, figure, quotient, share, summed

LIMIT = Limit(
    "flush_latency",
    "the disk's flush latency",
    (LOG, LATCH),
    signs=(
        share(0.3, LOG, LATCH),
        share(0.03, LOG),
        figure("disk.flushes", 1.0, "/s"),
        quotient("mean time of a flush", ("disk.flush_s", "disk.flushes"), 0.0005, "s"),
    ),
    against=(summed("time in flushes", ["disk.flush_s"], 0.2, "s/s", below=True),),
    doses=("disk.flush_latency", "mysqld.innodb_flush_log_at_trx_commit"),
)
