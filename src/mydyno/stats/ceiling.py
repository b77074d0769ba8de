"""The highest rate that each treatment keeps up with, of a load whose rate was stepped."""

from collections.abc import Sequence

from mydyno.model import Outcome, TrialStatus
from mydyno.stats.effects import by_key
from mydyno.stats.estimates import mean
from mydyno.stats.result import Ceiling

_KEPT = 0.97  # of the rate; the rest may still be queued when the window ends
_P99 = "latency_p99_s"
_SPEED = "replica_speed_ratio"
_WRITES = "disk_writes"


def ceilings(outcomes: Sequence[Outcome]) -> list[Ceiling]:
    """Return the ceilings of loads with several rates, ``rw/16@800``; valid trials count."""
    named = [(o, *o.trial.workload.rpartition("@")) for o in outcomes if not o.trial.soak]
    rated = [(o, load, int(rate)) for o, load, _, rate in named if load and rate.isdecimal()]
    each = by_key(((load, o.trial.treatment), (rate, o)) for o, load, rate in rated)
    found = (_ceiling(*key, by_key(some)) for key, some in each.items())
    return [one for one in found if one]


def _ceiling(load: str, treatment: str, rates: dict[int, list[Outcome]]) -> Ceiling | None:
    """Return the ceiling; None where fewer than two rates were measured."""
    done = {r: None if _fails(some) else mean(some, "tps") for r, some in sorted(rates.items())}
    steps = [(rate, tps) for rate, tps in done.items() if tps is not None or _fails(rates[rate])]
    if len(steps) < 2:  # noqa: PLR2004 - nothing was stepped
        return None
    speeds = {rate: mean(rates[rate], _SPEED) for rate, _ in steps}
    missed = next(((r, tps, speeds[r]) for r, tps in steps if _misses(r, tps, speeds[r])), None)
    kept = [rate for rate, _ in steps if missed is None or rate < missed[0]]
    at = kept[-1] if kept else None
    p99, writes = (None if at is None else mean(rates[at], name) for name in (_P99, _WRITES))
    too_much, did, speed = missed or (None, None, None)
    return Ceiling(treatment, load, at, p99, too_much, did, speed, writes)


def _fails(some: Sequence[Outcome]) -> bool:
    """Return whether half of the trials at a rate did not come to their end: requests pile up."""
    lost = sum(o.status in {TrialStatus.FAILED, TrialStatus.STALLED} for o in some)
    return lost > 0 and lost >= sum(o.status is TrialStatus.OK for o in some)


def _misses(rate: int, tps: float | None, speed: float | None) -> bool:
    """Return whether a load, or its replica where there is one, falls behind at a rate."""
    if tps is None:
        return True
    return tps < _KEPT * rate or (speed is not None and speed < _KEPT)
