"""Commits wait for the disk's flush."""

from mydyno.diagnose.account import LATCH, LOG
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share, summed

_BUSY = 0.5  # seconds of flushes in each second: one thread flushes, the connections wait for it


def _flushing(evidence: LoadEvidence) -> float | None:
    """Return the share that flushes, with what waits where the log has a thread of its own.

    MySQL 8.0 flushes its redo log so (`innodb_log_writer_threads`); no connection is seen to.
    """
    busy = (evidence.get("disk.flush_s") or 0.0) >= _BUSY
    return evidence.share(LOG, LATCH) if busy else evidence.share(LOG)


def _counted(evidence: LoadEvidence) -> float | None:
    """Return the flushes a second; None where there are none: the kernel counts none of LVM's."""
    return evidence.get("disk.flushes") or None


def _mean_s(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("disk.flush_s", "disk.flushes") if _counted(evidence) else None


LIMIT = Limit(
    "flush_latency",
    "the disk's flush latency",
    (LOG, LATCH),
    signs=(
        share(0.3, LOG, LATCH),
        Sign("connections in log, or waiting for its thread", _flushing, 0.03, "ratio"),
        Sign("disk.flushes", _counted, 1.0, "/s"),
        Sign("mean time of a flush", _mean_s, 0.0005, "s"),
    ),
    against=(summed("time in flushes", ["disk.flush_s"], 0.2, "s/s", below=True),),
    doses=("disk.flush_latency", "mysqld.innodb_flush_log_at_trx_commit", "mysqld.sync_binlog"),
)
