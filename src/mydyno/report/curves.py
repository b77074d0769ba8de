"""Curves of many trials put on one grid of time, so that they can be laid over each other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeGuard

from mydyno.report import units
from mydyno.stats.result import Curve, Result, TrialView

Samples = list[float | None]
TAIL = "latency_p99_s"


@dataclass(frozen=True, slots=True)
class TrialCurve:
    """One trial's curve; sample `i` belongs to ``t = i * step_s`` of its chart."""

    treatment: str
    block: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class Chart:
    """One quantity under one workload, all trials overlaid; latencies get a log axis.

    `warm` is where the first and the last warm-up ended, `end` where the last window did.
    """

    workload: str
    metric: str
    unit: str
    step_s: float
    warm: tuple[float, float]
    end: float
    tracks: tuple[TrialCurve, ...]

    @property
    def log(self) -> bool:
        """Return whether it is drawn on a logarithmic axis."""
        return self.unit == "s"

    @property
    def title(self) -> str:
        """Return its heading."""
        return f"{units.heading(self.metric)} over time"

    @property
    def length(self) -> int:
        """Return the number of grid points, that at ``t = 0`` included."""
        return max((len(t.samples) for t in self.tracks), default=0)


def charts(result: Result, workload: str) -> list[Chart]:
    """Return the response over time and then the p99 over time, without those nobody measured."""
    trials = [
        t for t in result.trials if t.workload == workload and t.status == "ok" and not t.soak
    ]
    metrics = dict.fromkeys((response(result, workload), TAIL))
    found = [_chart(workload, metric, trials) for metric in metrics]
    return [chart for chart in found if chart]


def response(result: Result, workload: str) -> str:
    """Return the workload's response: the campaign's that it has, or else its first rate."""
    wanted = [name.strip() for name in result.comparison.response.split(",")]
    trials = [t for t in result.trials if t.workload == workload]
    curves = [curve for trial in trials for curve in trial.curves]
    measured = {c.name for c in curves}.union(*(t.metrics for t in trials))
    rates = [c.name for c in curves if c.unit.endswith("/s")]
    return next((n for n in [*wanted, *rates] if n in measured), wanted[0])


def _chart(workload: str, metric: str, trials: Sequence[TrialView]) -> Chart | None:
    pairs = [(t, c) for t in trials for c in t.curves if c.name == metric and c.t_s]
    if not pairs:
        return None
    step = _step(pairs[0][1])
    tracks = tuple(TrialCurve(t.treatment, t.block, _sampled(c, step)) for t, c in pairs)
    windows = [t.window for t, _ in pairs if t.window[1] > t.window[0]]
    warm = (min((w[0] for w in windows), default=0.0), max((w[0] for w in windows), default=0.0))
    end = max((w[1] for w in windows), default=max(max(c.t_s) for _, c in pairs))
    return Chart(workload, metric, pairs[0][1].unit, step, warm, end, tracks)


def _step(curve: Curve) -> float:
    gaps = [b - a for a, b in zip(curve.t_s, curve.t_s[1:], strict=False) if b > a]
    return max(round(median(gaps), 3), 0.001) if gaps else 1.0


def _sampled(curve: Curve, step_s: float) -> Samples:
    """Return the curve on the grid; of two samples on one point the later stands."""
    samples: Samples = [None] * (round(max(curve.t_s) / step_s) + 1)
    for t_s, value in zip(curve.t_s, curve.values, strict=False):
        samples[max(round(t_s / step_s), 0)] = value
    return samples


def drawable(sample: float | None, *, log: bool) -> TypeGuard[float]:
    """Return whether a sample can be drawn: measured, finite, and above 0 on a log axis."""
    return sample is not None and math.isfinite(sample) and (sample > 0 or not log)


def of_treatment(chart: Chart, treatment: str) -> list[TrialCurve]:
    """Return one treatment's tracks."""
    return [track for track in chart.tracks if track.treatment == treatment]


def spread(tracks: Sequence[TrialCurve], length: int) -> tuple[Samples, Samples, Samples]:
    """Return the lowest, the median and the highest of the tracks at each grid point."""
    columns = [
        [s for t in tracks if i < len(t.samples) and drawable(s := t.samples[i], log=False)]
        for i in range(length)
    ]
    return (
        [min(c) if c else None for c in columns],
        [median(c) if c else None for c in columns],
        [max(c) if c else None for c in columns],
    )


def middle(chart: Chart, treatment: str, start_s: float, end_s: float) -> float | None:
    """Return the median of all a treatment's samples with ``start_s < t <= end_s``, or None."""
    first, last = round(start_s / chart.step_s) + 1, round(end_s / chart.step_s) + 1
    inside = [
        s
        for t in of_treatment(chart, treatment)
        for s in t.samples[first:last]
        if drawable(s, log=False)
    ]
    return median(inside) if inside else None
