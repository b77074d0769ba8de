"""Threads wait for each other inside the server: latches, the commit's order."""

from mydyno.diagnose.account import LATCH, LOG
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share


def _flushes(evidence: LoadEvidence) -> float | None:
    """Return the share in the log, for which others wait, where flushes are not counted (LVM)."""
    return evidence.share(LOG) if evidence.get("disk.flushes") == 0 else 0.0


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
