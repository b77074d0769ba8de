"""Threads wait for each other inside the server: latches, the commit's order."""

from mydyno.diagnose.account import LATCH, LOG
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share

_BUSY = 0.5  # seconds of flushes in each second by the log's own thread of MySQL 8.0
_OF_THREAD = [f"state.seconds:mysqld/ib_log_flush/sync.redo{end}" for end in ("", ".journal")]


def _flushes(evidence: LoadEvidence) -> float | None:
    """Return the share in the log, for which others wait, where flushes are not counted.

    Those of LVM are not, nor are any before Linux 5.5; of ZFS no disk is known.
    """
    if evidence.get("disk.flushes"):
        return 0.0
    busy = sum(evidence.get(name) or 0.0 for name in _OF_THREAD)
    return busy if busy >= _BUSY else evidence.share(LOG)


LIMIT = Limit(
    "latches",
    "latches and other locks of the server",
    (LATCH,),
    signs=(
        share(0.3, LATCH),
        Sign("connections in log, of uncounted flushes", _flushes, 0.03, "ratio", below=True),
    ),
    against=(
        share(0.03, LOG),
        figure("status.innodb_log_waits", 0.1, "/s"),
    ),
)
