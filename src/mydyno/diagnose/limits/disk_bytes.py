"""The disk's cap on bytes a second."""

from mydyno.diagnose.account import JOURNAL, LOG, READ, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share


def _capped(evidence: LoadEvidence) -> float | None:
    done = evidence.total("disk.read_bytes", "disk.write_bytes")
    cap = evidence.get("disk.cap_bytes")
    return done / cap if done is not None and cap else None


LIMIT = Limit(
    "disk_bytes",
    "the disk's bytes per second",
    (READ, WRITE, LOG, JOURNAL),
    signs=(
        Sign("bytes of the disk of their cap", _capped, 0.9, "ratio"),
        figure("disk.weighted_s", 1.0, "I/Os waiting"),
        share(0.2, READ, WRITE, LOG, JOURNAL),
    ),
    doses=("disk.rate",),
)
