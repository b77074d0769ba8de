"""The disk's cap on I/Os a second, or a rate that stays flat under a queue."""

from mydyno.diagnose.account import JOURNAL, LOG, READ, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share

_FLAT = 0.05  # relative spread of the seconds, where the cap is not known; seen: 5 %


def _capped(evidence: LoadEvidence) -> float | None:
    """Return the share of the cap that is used; 1 less the spread for a disk of unknown cap."""
    if evidence.total("disk.reads", "disk.writes") is None:
        return None
    if evidence.get("disk.uncapped"):
        return 0.0
    if (known := evidence.ios_of_cap()) is not None:
        return known
    spread = evidence.figures.spread.get("disk.reads", 1.0)
    return 1.0 - spread if spread < _FLAT else 0.0


LIMIT = Limit(
    "disk_ios",
    "the disk's I/Os per second",
    (READ, WRITE, LOG, JOURNAL),
    signs=(
        Sign("I/Os of the disk of its cap, or their evenness", _capped, 0.9, "ratio"),
        figure("disk.weighted_s", 2.0, "I/Os waiting"),
        share(0.2, READ, WRITE, LOG, JOURNAL),
    ),
    against=(Sign("bytes of the disk of their cap", LoadEvidence.bytes_of_cap, 0.9, "ratio"),),
    doses=("disk.rate",),
)
