"""Plots as the template draws them: ticks in per cent, and paths on a square of 1000 by 1000."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median

from mydyno.report import units
from mydyno.report.timeseries import (
    Chart,
    Panel,
    PanelSeries,
    Samples,
    drawable,
    of_treatment,
    spread,
    thinned,
)
from mydyno.stats.result import TrialView

_NICE = (1.0, 2.0, 2.5, 5.0, 10.0)
_NARROW = 4.0  # a log axis spanning less than this reads best with evenly spaced ticks
_CLOCK = (0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)
_MOST_TICKS = 5
_APART = 1e-6  # relative distance below which tick labels would be equal
_LONG_DECADES = 4  # and above this many decades only the decades are labelled
_MOST_DECADES = 12  # that have a label each
_FARTHEST = 1e150  # from zero that an axis reaches: sums and quotients of such numbers are finite


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear or logarithmic scale and the values at its ticks."""

    low: float
    high: float
    log: bool
    ticks: tuple[float, ...]

    def at(self, value: float) -> float:
        """Return where `value` stands, 0 at the low end and 100 at the high; clamped to that."""
        if self.log:
            low, high, value = (math.log(max(x, 1e-300)) for x in (self.low, self.high, value))
        else:
            low, high = self.low, self.high
        return round(100 * min(max((value - low) / (high - low), 0.0), 1.0), 2)


def linear(low: float, high: float, ticks: int = 5) -> Axis:
    """Return a linear axis from `low` to `high`, rounded outwards to ticks."""
    low, high = (min(max(x, -_FARTHEST), _FARTHEST) for x in (low, high))
    if not high - low > _APART * abs(high):
        low, high = min(low, 0.0), max(high, 1.0)
    step = _step(high - low, ticks)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    values = tuple(float(f"{i * step:.12g}") for i in range(first, last + 1))
    return Axis(values[0], values[-1], log=False, ticks=values)


def logarithmic(low: float, high: float, ticks: int = 5) -> Axis:
    """Return a logarithmic axis exactly from `low` to `high`, both above 0."""
    low, high = (min(max(x, 1 / _FARTHEST), _FARTHEST) for x in (low, high))
    if not high / low > 1 + _APART:
        low, high = low / 1.5, low * 1.5
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high / low < _NARROW:
        inside: Iterable[float] = linear(low, high, ticks).ticks
    elif len(decades) > _LONG_DECADES:
        inside = (10.0**d for d in decades[:: math.ceil(len(decades) / _MOST_DECADES)])
    else:
        inside = (m * 10.0**d for d in decades for m in (1, 2, 5))
    shown = tuple(float(f"{x:.12g}") for x in inside if low <= x * (1 + 1e-9) <= high * (1 + 2e-9))
    return Axis(low, high, log=True, ticks=shown)


def clock(last_s: float) -> Axis:
    """Return an axis of time from 0 to `last_s`, with few ticks that people count in."""
    step = pace(last_s, _MOST_TICKS)
    count = int(last_s / step + 1e-9)
    return Axis(0.0, last_s, log=False, ticks=tuple(i * step for i in range(count + 1)))


def pace(last_s: float, most: int) -> float:
    """Return the shortest step people count time in that fits `last_s` at most so many times."""
    return next((s for s in _CLOCK if last_s / s <= most * (1 + 1e-9)), last_s / most)


def nines(share: float, deepest: float) -> float:
    """Return where a share stands, in per cent, if each further nine takes the same room.

    `deepest` is the share at 100: with 0.9999 there, 0.9 stands at 25 and 0.99 at 50.
    """
    reach = -math.log10(1 - deepest)
    return round(100 * min(-math.log10(max(1 - share, 1e-300)) / reach, 1.0), 2)


def _step(span: float, ticks: int) -> float:
    rough = span / max(ticks, 1)
    scale = 10.0 ** math.floor(math.log10(rough))
    return float(f"{next(n for n in _NICE if n * scale >= rough * (1 - 1e-9)) * scale:.12g}")


_SIDE = 10  # path units in one per cent
_COLOURS = 7  # beside the baseline's grey
_DASHES = 5

Point = tuple[float, float]  # per cent along x, per cent up y


@dataclass(frozen=True, slots=True)
class Style:
    """How one treatment is drawn everywhere: a colour and a dash of its own."""

    name: str
    colour: int
    dash: int

    @property
    def css(self) -> str:
        """Return its classes in the style sheet."""
        return f"c{self.colour} d{self.dash}"


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A labelled place on an axis, in per cent."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class Line:
    """One path: its classes, its name for a tooltip, and its data."""

    css: str
    name: str
    path: str


@dataclass(frozen=True, slots=True)
class Plot:
    """One plot: axes, filled bands below lines, and the parts of x that were not measured.

    Those are from 0 to `warm` and from `end` to 100.
    """

    title: str
    xs: tuple[AxisTick, ...]
    ys: tuple[AxisTick, ...]
    bands: tuple[Line, ...]
    lines: tuple[Line, ...]
    warm: float = 0.0
    end: float = 100.0

    @property
    def stacked(self) -> bool:
        """Return whether bands hide the shading, so that it must be laid over them too."""
        return len(self.bands) > 1


def styles(treatments: Sequence[str]) -> dict[str, Style]:
    """Return a style for each treatment, the first (the baseline) in grey; unique up to 35."""
    found = {}
    for i, name in enumerate(treatments):
        colour = 0 if i == 0 else 1 + (i - 1) % _COLOURS
        found[name] = Style(name, colour, (i + (i - 1) // _COLOURS) % _DASHES if i else 0)
    return found


def ticks(axis: Axis, unit: str) -> tuple[AxisTick, ...]:
    """Return an axis' ticks with their values in scaled units."""
    return tuple(AxisTick(axis.at(value), units.quantity(value, unit)) for value in axis.ticks)


def path(points: Iterable[Point | None]) -> str:
    """Return a path through the points, broken at each gap."""
    parts, command = [], "M"
    for point in points:
        if point is None:
            command = "M"
            continue
        parts.append(f"{command}{_pair(point)}")
        command = "L"
    return "".join(parts)


def area(lower: Sequence[Point | None], upper: Sequence[Point | None]) -> str:
    """Return the closed outline between two curves that share their gaps."""
    shape, below = "", []
    above: list[Point] = []
    for low, high in [*zip(lower, upper, strict=True), (None, None)]:
        if low is not None and high is not None:
            below.append(low)
            above.append(high)
        elif below:
            shape += "M" + "L".join(_pair(p) for p in [*above, *reversed(below)]) + "Z"
            below, above = [], []
    return shape


def _pair(point: Point) -> str:
    """Return a point in path units, with y downwards as SVG has it."""
    return f"{_SIDE * point[0]:.0f} {_SIDE * (100 - point[1]):.0f}"


# series over time: the panels of one trial, and the small multiples of many

_STACK = (1, 5, 6, 3, 2)  # colours: I/O wait and steal stand out
_TICKS = 3
_CURVE_POINTS = 240  # of one curve: a drawing is not zoomed into

Drawn = tuple[TrialView, PanelSeries | None, Style]


def upright(samples: Iterable[float | None], *, log: bool) -> Axis:
    """Return the y axis of a series over time: from 0 to the greatest sample, or logarithmic."""
    seen = [s for s in samples if drawable(s, log=log)]
    low, high = min(seen, default=1.0), max(seen, default=1.0)
    return logarithmic(low, high, _TICKS) if log else linear(0, high, _TICKS)


def over_time(
    samples: Samples, start_s: float, step_s: float, x: Axis, y: Axis
) -> list[Point | None]:
    """Return where the samples stand, the first of them at `start_s`; gaps are None."""
    return [
        (x.at(start_s + i * step_s), y.at(s)) if drawable(s, log=y.log) else None
        for i, s in enumerate(samples)
    ]


def seconds(x: Axis) -> tuple[AxisTick, ...]:
    """Return the ticks of an axis of time."""
    return tuple(AxisTick(x.at(t), f"{t:g} s") for t in x.ticks)


def legend(panel: Panel) -> tuple[Style, ...]:
    """Return how each of a panel's curves is drawn; one alone takes its treatment's style."""
    labels = [label for _, label in panel.curves]
    if len(labels) == 1:
        return ()
    if panel.stacked:
        return tuple(Style(label, colour, 0) for label, colour in zip(labels, _STACK, strict=True))
    return tuple(Style(label, i + 1, i) for i, label in enumerate(labels))


def plots(panel: Panel, drawn: Sequence[Drawn]) -> list[Plot | None]:
    """Return each trial's drawing, None where it has no series; all on the same axes."""
    coarse = [(t, one and thinned(one, panel, _CURVE_POINTS), style) for t, one, style in drawn]
    series = [one for _, one, _ in coarse if one]
    if not series:
        return [None for _ in drawn]
    x, y = (
        clock(max(_last(t, one) for t, one, _ in coarse if one)),
        _upright(panel, series),
    )
    return [_plot(panel, each, x, y) for each in coarse]


def _last(trial: TrialView, series: PanelSeries) -> float:
    return max(series.start_s + (series.length - 1) * series.step_s, trial.window[1], 1.0)


def _upright(panel: Panel, series: Sequence[PanelSeries]) -> Axis:
    """Return the y axis; that of a stack reaches to its sum and to the number of cores."""
    every: Samples = []
    for one in series:
        every += one.totals if panel.stacked else [s for t in one.tracks for s in t]
        every.append(one.top)
    return upright(every, log=panel.log)


def _plot(panel: Panel, drawn: Drawn, x: Axis, y: Axis) -> Plot | None:
    trial, series, style = drawn
    if series is None:
        return None
    styles = legend(panel) or (style,)
    bands, lines = (
        _stack(series, styles, x, y) if panel.stacked else ((), _lines(series, styles, x, y))
    )
    if series.top:
        ends = [(0.0, y.at(series.top)), (100.0, y.at(series.top))]
        lines = (*lines, Line("c0 d2 cores", f"{series.top:.0f} cores", path(ends)))
    start, end = (x.at(t) for t in trial.window)
    return Plot(
        trial.treatment, seconds(x), ticks(y, panel.unit), bands, lines, start, end or 100.0
    )


def _lines(series: PanelSeries, styles: Sequence[Style], x: Axis, y: Axis) -> tuple[Line, ...]:
    pairs = zip(series.tracks, styles, strict=True)
    start, step = series.start_s, series.step_s
    return tuple(Line(s.css, s.name, path(over_time(t, start, step, x, y))) for t, s in pairs if t)


def _stack(
    series: PanelSeries, styles: Sequence[Style], x: Axis, y: Axis
) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    floors = [over_time(f, series.start_s, series.step_s, x, y) for f in levels(series)]
    bands = tuple(
        Line(f"{style.css} solid", style.name, area(low, high))
        for style, low, high in zip(styles, floors, floors[1:], strict=False)
    )
    return bands, ()


def levels(series: PanelSeries) -> list[Samples]:
    """Return the floor of a stack and then each track on top of those before it."""
    known = series.totals
    columns = []
    for i, total in enumerate(known):
        each = [t[i] if i < len(t) else None for t in series.tracks]
        heights = accumulate((s or 0.0 for s in each), initial=0.0)
        columns.append(list(heights) if total is not None else [None] * (len(each) + 1))
    return [list(level) for level in zip(*columns, strict=True)]


_BUCKETS = 120  # points across one plot: more are not visible at its size
_ROWS = 12  # of the table with the same figures


def multiples(chart: Chart, styles: Sequence[Style]) -> list[Plot]:
    """Return a plot for each treatment with data; the baseline, first of `styles`, is in all."""
    x, y = _axes(chart)
    spreads = {s.name: _coarse(chart, s.name) for s in styles}
    base = _line(spreads[styles[0].name][1], chart, x, y)
    shown = []
    for style in styles:
        low, mid, high = (_line(s, chart, x, y) for s in spreads[style.name])
        if not any(mid):
            continue
        lines = [Line("reference", styles[0].name, path(base))] if style != styles[0] else []
        lines.append(Line(f"c{style.colour}", style.name, path(mid)))
        band = Line(f"c{style.colour}", f"{style.name}: lowest to highest block", area(low, high))
        frame = (style.name, seconds(x), ticks(y, chart.unit))
        shown.append(Plot(*frame, (band,), tuple(lines), x.at(chart.warm[0])))
    return shown


def multiples_table(chart: Chart, styles: Sequence[Style]) -> list[list[str]]:
    """Return the charted medians as rows of text: a time, then a value for each treatment."""
    last_s = (chart.length - 1) * chart.step_s
    wide = max(round(pace(last_s, _ROWS) / chart.step_s), 1)
    medians = [spread(of_treatment(chart, s.name), chart.length)[1] for s in styles]
    rows = []
    for first in range(1, chart.length, wide):
        until = min(first + wide, chart.length)
        cells = (_cell(m[first:until], chart.unit) for m in medians)
        rows.append([f"{(until - 1) * chart.step_s:g} s", *cells])
    return rows


def _cell(samples: Samples, unit: str) -> str:
    seen = [s for s in samples if s is not None]
    return units.quantity(median(seen), unit) if seen else units.NOTHING


def _axes(chart: Chart) -> tuple[Axis, Axis]:
    """Return the axes that all plots of a chart share."""
    last = max(chart.length - 1, 1) * chart.step_s
    return clock(last), upright((s for t in chart.tracks for s in t.samples), log=chart.log)


def _coarse(chart: Chart, treatment: str) -> tuple[Samples, Samples, Samples]:
    """Return a treatment's spread in at most so many buckets; no extreme is lost."""
    low, mid, high = spread(of_treatment(chart, treatment), chart.length)
    wide = max(1, -(-chart.length // _BUCKETS))
    return _bucketed(low, wide, min), _bucketed(mid, wide, median), _bucketed(high, wide, max)


def _bucketed(samples: Samples, wide: int, pick: Callable[[Sequence[float]], float]) -> Samples:
    groups = (samples[i : i + wide] for i in range(0, len(samples), wide))
    present = ([s for s in group if s is not None] for group in groups)
    return [pick(group) if group else None for group in present]


def _line(samples: Samples, chart: Chart, x: Axis, y: Axis) -> list[Point | None]:
    return over_time(samples, 0.0, max(1, -(-chart.length // _BUCKETS)) * chart.step_s, x, y)
