"""Metrics that are shown as they are, without a verdict."""

from collections.abc import Sequence
from statistics import fmean

from mydyno.analyse.result import Estimate
from mydyno.analyse.summary import unit_of
from mydyno.model import Outcome, Status

PLAIN = ("storage_bytes", "storage_apparent_bytes", "compression_ratio")


def plain(outcomes: Sequence[Outcome]) -> dict[str, Estimate]:
    """Return the means over the trials that went well; what none of them has is left out."""
    good = [o for o in outcomes if o.status is Status.OK]
    found = {name: [m.value for o in good for m in o.metrics if m.name == name] for name in PLAIN}
    return {n: Estimate(fmean(values), unit_of(n)) for n, values in found.items() if values}
