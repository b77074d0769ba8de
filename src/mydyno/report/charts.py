"""Charts of results: effects, values of trials, distributions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from mydyno.report import units
from mydyno.report.plot import (
    Axis,
    AxisTick,
    Line,
    Plot,
    Point,
    Style,
    linear,
    logarithmic,
    nines,
    path,
    ticks,
)
from mydyno.report.units import TIMES
from mydyno.stats.result import Distribution, Ratio, TrialView

_BEYOND = 2.0  # an interval reaching this far past all estimates is cut, and an arrow marks it
_PADDING = 0.06  # of the log span, so that no mark touches the edge
_LEAST = 1.05  # the axis spans at least 1/1.05 to 1.05


@dataclass(frozen=True, slots=True)
class Whisker:
    """A mark with its interval, in per cent of the axis; `cut_…` where it reaches past an end."""

    at: float
    low: float
    high: float
    cut_low: bool
    cut_high: bool


@dataclass(frozen=True, slots=True)
class Forest:
    """The axis all rows share: ticks, where ratio 1 stands, and the band within the margin."""

    axis: Axis
    ticks: tuple[AxisTick, ...]
    one: float
    band: tuple[float, float]

    def whisker(self, effect: Ratio) -> Whisker:
        """Return where an effect's mark and interval stand."""
        at, low, high = (self.axis.at(x) for x in (effect.ratio, effect.low, effect.high))
        return Whisker(at, low, high, effect.low < self.axis.low, effect.high > self.axis.high)


def forest(effects: Sequence[Ratio], margin: float) -> Forest:
    """Return the axis for these effects; `margin` is a ratio less one."""
    low, high = _reach(effects, 1 + margin)
    axis = logarithmic(low, high, 4)
    marks = tuple(AxisTick(axis.at(value), f"{value:g}{TIMES}") for value in axis.ticks)
    band = (axis.at(1 / (1 + margin)), axis.at(1 + margin))
    return Forest(axis, marks, axis.at(1.0), band)


def _reach(effects: Sequence[Ratio], margin: float) -> tuple[float, float]:
    estimates = [e.ratio for e in effects if e.ratio > 0 and math.isfinite(e.ratio)]
    inner_low = min([1 / margin, 1 / _LEAST, *estimates])
    inner_high = max([margin, _LEAST, *estimates])
    low = max(min([inner_low, *(e.low for e in effects)]), inner_low / _BEYOND)
    high = min(max([inner_high, *(e.high for e in effects)]), inner_high * _BEYOND)
    room = (high / low) ** _PADDING
    return low / room, high * room


@dataclass(frozen=True, slots=True)
class Dot:
    """One trial: where its response stands, its height in the row by block, and its tooltip."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class DotRow:
    """One treatment's trials and their geometric mean; `lost` counts those without a value."""

    style: Style
    dots: tuple[Dot, ...]
    mean: float | None
    lost: int


@dataclass(frozen=True, slots=True)
class DotPlot:
    """All treatments under one workload on a shared axis."""

    ticks: tuple[AxisTick, ...]
    rows: tuple[DotRow, ...]
    spread: str  # the sentence about the repeats


def dot_plot(
    trials: Sequence[TrialView], styles: Sequence[Style], response: str, unit: str
) -> DotPlot | None:
    """Return one workload's trials, or None if none of them has a response."""
    values = [t.metrics[response] for t in trials if _counts(t, response)]
    if not values:
        return None
    room = 0.08 * (max(values) - min(values) or max(values))
    axis = linear(max(min(values) - room, 0.0), max(values) + room, 5)
    trials = [t for t in trials if not t.soak]
    named = {s.name: [t for t in trials if t.treatment == s.name] for s in styles}
    rows = [_row(s, named[s.name], axis, (response, unit)) for s in styles if named[s.name]]
    return DotPlot(ticks(axis, unit), tuple(rows), _spread(named, response))


def _row(style: Style, trials: Sequence[TrialView], axis: Axis, shown: tuple[str, str]) -> DotRow:
    response, unit = shown
    good = [t for t in trials if _counts(t, response)]
    last = max((t.block for t in trials), default=0)
    dots = tuple(
        Dot(
            axis.at(t.metrics[response]),
            round(100 * (t.block + 1) / (last + 2), 1),
            f"{style.name}, block {t.block + 1}, trial {t.id}: "
            f"{units.quantity(t.metrics[response], unit)}",
        )
        for t in good
    )
    mean = _geometric([t.metrics[response] for t in good])
    return DotRow(style, dots, None if mean is None else axis.at(mean), len(trials) - len(good))


def _counts(trial: TrialView, response: str) -> bool:
    value = trial.metrics.get(response)
    return trial.status == "ok" and not trial.soak and value is not None and math.isfinite(value)


def _geometric(values: Sequence[float]) -> float | None:
    if not values or min(values) <= 0:
        return sum(values) / len(values) if values else None
    return math.exp(sum(math.log(v) for v in values) / len(values))


def _spread(named: dict[str, list[TrialView]], response: str) -> str:
    """Return how much the repeats of one treatment differ, for the treatment where it is most."""
    spans = []
    for name, trials in named.items():
        values = [t.metrics[response] for t in trials if _counts(t, response)]
        if len(values) > 1 and min(values) > 0:
            spans.append((max(values) / min(values) - 1, name))
    if not spans:
        return "Each treatment ran once, so repeatability is not known."
    most, name = max(spans)
    return f"Repeats of one treatment differ by at most {units.share(round(most, 3))} ({name})."


_PERCENTILES = (0.5, 0.9, 0.95, 0.99, 0.999)
_OF_KINDS = (0.5, 0.95, 0.99)
_LEVELS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
_DEEPEST = 0.99995  # the top of the plot: beyond it a minute's load has too few operations
_POINTS = 240  # a curve never needs more


def of_workload(
    distributions: Sequence[Distribution], workload: str, styles: Sequence[Style]
) -> list[tuple[Style, Distribution]]:
    """Return one workload's distributions in the order of the styles, without empty ones."""
    named = {d.treatment: d for d in distributions if _of_all_kinds(d) and d.workload == workload}
    return [(style, named[style.name]) for style in styles if style.name in named]


def distribution_plot(found: Sequence[tuple[Style, Distribution]]) -> Plot | None:
    """Return latency along x (log) and the share that was as fast up y, nines evenly spaced."""
    deepest = min(_DEEPEST, max((_top(d) for _, d in found), default=0.0))
    values = [t for _, d in found for t, s in d.points if t > 0 and s <= deepest]
    if not values:
        return None
    axis = logarithmic(_floor(found, min(values)), max(values), 5)
    levels = tuple(AxisTick(nines(s, deepest), units.share(s)) for s in _LEVELS if s < deepest)
    lines = []
    for style, d in found:
        points: list[Point | None] = [
            (axis.at(t), nines(s, deepest)) for t, s in _thinned(d.points) if t > 0 and s <= deepest
        ]
        lines.append(Line(style.css, style.name, path(points)))
    return Plot("Latency", ticks(axis, "s"), levels, (), tuple(lines))


def distribution_table(
    found: Sequence[tuple[Style, Distribution]],
) -> tuple[list[str], list[list[str]]]:
    """Return the heading and, for each treatment, its count and percentiles as text."""
    head = ["Treatment", "Operations", *(f"p{100 * p:g}" for p in _PERCENTILES), "Highest"]
    rows = [
        [
            style.name,
            f"{d.count:,}".replace(",", "\N{NO-BREAK SPACE}"),
            *(units.quantity(percentile(d, p), "s") for p in _PERCENTILES),
            units.quantity(d.points[-1][0], "s"),
        ]
        for style, d in found
    ]
    return head, rows


def kinds(
    distributions: Sequence[Distribution], workload: str, styles: Sequence[Style]
) -> tuple[list[str], list[list[str]]]:
    """Return the heading and a row for each kind of transaction and treatment, if any."""
    head = ["Kind", "Treatment", "Operations", "Share", *(f"p{100 * p:g}" for p in _OF_KINDS)]
    found = [d for d in distributions if d.workload == workload and d.kind and d.points]
    totals = {
        d.treatment: d.count for d in distributions if _of_all_kinds(d) and d.workload == workload
    }
    rows = [
        [
            d.kind.replace("_", " "),
            style.name,
            units.number(d.count),
            units.quantity(d.count / totals[style.name], "share"),
            *(units.quantity(percentile(d, p), "s") for p in _OF_KINDS),
            units.quantity(d.points[-1][0], "s"),
        ]
        for kind in dict.fromkeys(d.kind for d in found)
        for style in styles
        for d in found
        if (d.kind, d.treatment) == (kind, style.name) and style.name in totals
    ]
    return [*head, "Highest"], rows


def percentile(distribution: Distribution, share: float) -> float:
    """Return the least latency, in s, that at least this share did not exceed."""
    points = distribution.points
    return next((t for t, reached in points if reached >= share - 1e-12), points[-1][0])


def _of_all_kinds(distribution: Distribution) -> bool:
    return bool(distribution.points) and not distribution.kind


def _top(distribution: Distribution) -> float:
    """Return the share that all but one operation reached: the last that is not chance."""
    return max(1 - 1 / max(distribution.count, 20), 0.95)


def _floor(found: Sequence[tuple[Style, Distribution]], least: float) -> float:
    """Return where x begins: at the fastest 1 %, so that outliers take no room."""
    return max(least, min(percentile(d, 0.01) for _, d in found))


def _thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the points without those too close to the previous one."""
    if len(points) <= _POINTS:
        return list(points)
    least = (nines(points[-1][1], 1 - 1e-6) - nines(points[0][1], 1 - 1e-6)) / _POINTS
    thin = [points[0]]
    for point, after in pairwise(points[1:]):
        far = nines(after[1], 1 - 1e-6) - nines(thin[-1][1], 1 - 1e-6) > least
        if far or point[0] > thin[-1][0] * 1.05:
            thin.append(point)
    return [*thin, points[-1]]
