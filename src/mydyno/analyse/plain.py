"""Metrics that are reported only, without a verdict."""

from collections.abc import Sequence
from math import isfinite
from statistics import fmean

from mydyno.analyse.estimates import metric_of
from mydyno.analyse.result import Estimate
from mydyno.analyse.summary import unit_of
from mydyno.model import Outcome, Status

PLAIN = ("storage_bytes", "storage_apparent_bytes", "compression_ratio")


def plain(outcomes: Sequence[Outcome]) -> dict[str, Estimate]:
    """Return the means of these metrics over the good trials, without metrics that none has."""
    found = {name: mean(outcomes, name) for name in PLAIN}
    return {n: Estimate(v, unit_of(n)) for n, v in found.items() if v is not None}


def mean(outcomes: Sequence[Outcome], metric: str) -> float | None:
    """Return a metric's mean over the good trials, None if none of them has it."""
    good = [o for o in outcomes if o.status is Status.OK]
    values = [v for o in good if (v := metric_of(o, metric)) is not None and isfinite(v)]
    if not values:
        return None
    try:
        return fmean(values)
    except OverflowError:  # no float holds their sum
        return sum(v / len(values) for v in values)
