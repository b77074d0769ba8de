"""Both plateaus of trials in which performance falls once, as where burst credits end."""

from collections.abc import Iterator, Sequence
from statistics import median

import numpy as np

from mydyno.model import Outcome, Series, TrialStatus
from mydyno.stats.drift import FALL_SHARE, fall
from mydyno.stats.effects import by_key
from mydyno.stats.estimates import BIN_S, unit_of
from mydyno.stats.result import Plateaus
from mydyno.stats.rule import Rule
from mydyno.stats.sequential import gains

_AROUND = 1  # bins to either side of a fall that belong to no plateau


def plateaus(outcomes: Sequence[Outcome], rule: Rule) -> list[Plateaus]:
    """Return the plateaus of each treatment most of whose valid trials fall by themselves."""
    valid = [o for o in outcomes if o.status is TrialStatus.OK and not o.trial.soak]
    each = by_key(((o.trial.workload, o.trial.treatment), o) for o in valid)
    found = []
    for (workload, treatment), trials in each.items():
        response = rule.responses.get(workload, "")
        series = [s for o in trials for s in o.series if s.name == response]
        fallen = list(_fallen(series, rule))
        if fallen and len(fallen) >= FALL_SHARE * len(trials):
            before, after, at_s, work, seconds = (median(x) for x in zip(*fallen, strict=True))
            found.append(
                Plateaus(
                    *(treatment, workload, unit_of(response), len(fallen), len(trials)),
                    *(before, after, at_s),
                    None if response.startswith("latency_") else work,
                    seconds,
                )
            )
    return found


def _fallen(some: Sequence[Series], rule: Rule) -> Iterator[tuple[float, ...]]:
    """Yield of each trial that fell: both levels, the time of the fall, the work, the length."""
    for series in some:
        if (found := fall(gains(series, rule.lower))) is None:
            continue
        at, values = found[0], series.values
        if not _is_step(values, at):
            continue
        before = median(values[: max(at - _AROUND, 1)])
        after = median(values[at + _AROUND :] or values[at:])
        first, last = max(at - _AROUND, 0), min(at + _AROUND + 1, len(values))
        # the bins around the fall are shared between the two levels, so that their sum is right
        high = (sum(values[first:last]) - after * (last - first)) / (before - after)
        at_s = (first + min(max(high, 0.0), last - first)) * BIN_S
        yield before, after, at_s, sum(values) * BIN_S, len(values) * BIN_S


def _is_step(values: Sequence[float], at: int) -> bool:
    """Return whether two levels fit better than a straight line, as that of a queue that grows."""
    some = np.asarray(values)
    time = np.arange(len(some))
    line = some - np.polyval(np.polyfit(time, some, 1), time)
    near = range(max(at - _AROUND, 1), min(at + _AROUND + 1, len(some)))  # `at` is of two bins
    steps = [some - np.where(time < i, some[:i].mean(), some[i:].mean()) for i in near]
    return min(float(step @ step) for step in steps) < float(line @ line)
