"""Burst credits are spent: the disk does its base rate, below its burst."""

from mydyno.diagnose.account import JOURNAL, LOG, READ, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _base(evidence: LoadEvidence) -> float | None:
    done, cap = evidence.total("disk.reads", "disk.writes"), evidence.get("disk.cap_ios")
    return done / cap if done is not None and cap else None


def _burst(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("disk.burst_ios", "disk.cap_ios")


LIMIT = Limit(
    "disk_credits",
    "spent burst credits of the disk",
    (READ, WRITE, LOG, JOURNAL),
    signs=(
        Sign("I/Os of the disk of its base rate", _base, 0.9, "ratio"),
        Sign("burst rate over base rate", _burst, 1.2, "ratio"),
        share(0.2, READ, WRITE, LOG, JOURNAL),
    ),
    against=(Sign("I/Os of the disk of its base rate", _base, 1.15, "ratio"),),
    doses=("disk.rate",),
)
