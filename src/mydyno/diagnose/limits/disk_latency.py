"""The disk is slow, not full: each read takes long at a rate below any cap."""

from mydyno.diagnose.account import READ
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _read_s(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("disk.read_s", "disk.reads")


def _capped(evidence: LoadEvidence) -> float | None:
    done, cap = evidence.total("disk.reads", "disk.writes"), evidence.get("disk.cap_ios")
    return done / cap if done is not None and cap else None


LIMIT = Limit(
    "disk_latency",
    "the disk's read latency",
    (READ,),
    signs=(
        share(0.3, READ),
        Sign("mean time of a read", _read_s, 0.0005, "s"),
    ),
    against=(Sign("I/Os of the disk of their cap", _capped, 0.8, "ratio"),),
    doses=("disk.read_latency",),
)
