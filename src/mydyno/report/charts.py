"""Charts as the template draws them: axes, paths, and the plots of effects, trials and latencies.

Positions are per cent of an axis, paths are on a square of 1000 by 1000.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from mydyno.report import units
from mydyno.report.units import TIMES
from mydyno.stats.result import Distribution, Ratio, TrialView

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


def logarithmic(low: float, high: float, ticks: int = 5, dense: int = _LONG_DECADES) -> Axis:
    """Return a logarithmic axis exactly from `low` to `high`, both above 0.

    Between decades there are ticks up to `dense` of them.
    """
    low, high = (min(max(x, 1 / _FARTHEST), _FARTHEST) for x in (low, high))
    if not high / low > 1 + _APART:
        low, high = low / 1.5, low * 1.5
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    if high / low < _NARROW:
        inside: Iterable[float] = linear(low, high, ticks).ticks
    elif len(decades) > dense:
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
class Table:
    """Text in columns: the heading, and the rows, each of which begins with its name."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


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


_BEYOND = 2.0  # an interval reaching this far past all estimates is cut, with an arrow there
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
    found = {s: [t for t in trials if t.treatment == s.name and not t.soak] for s in styles}
    good = {s: [t for t in mine if _counts(t, response)] for s, mine in found.items()}
    values = {s: [t.metrics[response] for t in mine] for s, mine in good.items()}
    every = [value for mine in values.values() for value in mine]
    if not every:
        return None
    room = 0.08 * (max(every) - min(every) or max(every))
    axis = linear(max(min(every) - room, 0.0), max(every) + room, 5)
    rows = []
    for style, mine in found.items():
        last = max((t.block for t in mine), default=0)
        dots = tuple(
            Dot(
                axis.at(value),
                round(100 * (t.block + 1) / (last + 2), 1),
                f"{style.name}, block {t.block + 1}, trial {t.id + 1}: "
                f"{units.quantity(value, unit)}",
            )
            for t, value in zip(good[style], values[style], strict=True)
        )
        if mine:
            mean = axis.at(_mean(values[style])) if dots else None
            rows.append(DotRow(style, dots, mean, len(mine) - len(dots)))
    return DotPlot(ticks(axis, unit), tuple(rows), _spread(values))


def _counts(trial: TrialView, response: str) -> bool:
    return trial.status == "ok" and math.isfinite(trial.metrics.get(response, math.nan))


def _mean(values: Sequence[float]) -> float:
    """Return the geometric mean, or the arithmetic one where a value is not above 0."""
    if min(values) <= 0:
        return sum(values) / len(values)
    return math.exp(sum(math.log(v) for v in values) / len(values))


def _spread(values: Mapping[Style, Sequence[float]]) -> str:
    """Return how much the repeats of one treatment differ, for the treatment where it is most."""
    spans = [
        (max(mine) / min(mine) - 1, style.name)
        for style, mine in values.items()
        if len(mine) > 1 and min(mine) > 0
    ]
    if not spans:
        return "Each treatment ran once, so repeatability is not known."
    most, name = max(spans)
    return f"Repeats of one treatment differ by at most {units.share(round(most, 3))} ({name})."


_OF_ALL = (0.5, 0.9, 0.95, 0.99, 0.999)
_OF_KINDS = (0.5, 0.95, 0.99)
_LEVELS = (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999)
_DEEPEST = 0.99995  # the top of the plot: beyond it a minute's load has too few operations
_POINTS = 240  # a curve never needs more


def of_workload(
    distributions: Sequence[Distribution], workload: str, styles: Sequence[Style]
) -> list[tuple[Style, Distribution]]:
    """Return one workload's distributions in the order of the styles, without empty ones."""
    named = {
        d.treatment: d for d in distributions if d.workload == workload and d.points and not d.kind
    }
    return [(style, named[style.name]) for style in styles if style.name in named]


def distribution_plot(found: Sequence[tuple[Style, Distribution]]) -> Plot | None:
    """Return latency along x (log) and the share that was as fast up y, nines evenly spaced."""
    # up to the share that all but one operation reached: the last that is not chance
    deepest = min(_DEEPEST, 1 - 1 / max([20, *(d.count for _, d in found)]))
    values = [t for _, d in found for t, s in d.points if t > 0 and s <= deepest]
    if not values:
        return None
    fastest = min(percentile(d, 0.01) for _, d in found)  # outliers take no room
    axis = logarithmic(max(min(values), fastest), max(values), 5)
    levels = tuple(AxisTick(nines(s, deepest), units.share(s)) for s in _LEVELS if s < deepest)
    lines = []
    for style, d in found:
        points: list[Point | None] = [
            (axis.at(t), nines(s, deepest)) for t, s in _thinned(d.points) if t > 0 and s <= deepest
        ]
        lines.append(Line(style.css, style.name, path(points)))
    return Plot("Latency", ticks(axis, "s"), levels, (), tuple(lines))


def distribution_table(found: Sequence[tuple[Style, Distribution]]) -> Table:
    """Return each treatment's count and percentiles as text."""
    rows = [(style.name, units.number(d.count), *_quantiles(d, _OF_ALL)) for style, d in found]
    return Table(("Treatment", "Operations", *_names(_OF_ALL)), tuple(rows))


def kinds(distributions: Sequence[Distribution], workload: str, styles: Sequence[Style]) -> Table:
    """Return a row for each kind of transaction and treatment, if any."""
    totals = {s.name: d.count for s, d in of_workload(distributions, workload, styles)}
    found = [d for d in distributions if d.workload == workload and d.kind and d.points]
    rows = [
        (
            d.kind.replace("_", " "),
            d.treatment,
            units.number(d.count),
            units.quantity(d.count / totals[d.treatment], "share"),
            *_quantiles(d, _OF_KINDS),
        )
        for kind in dict.fromkeys(d.kind for d in found)
        for treatment in totals
        for d in found
        if (d.kind, d.treatment) == (kind, treatment)
    ]
    return Table(("Kind", "Treatment", "Operations", "Share", *_names(_OF_KINDS)), tuple(rows))


def _names(shares: Sequence[float]) -> Sequence[str]:
    return (*(f"p{100 * share:g}" for share in shares), "Highest")


def _quantiles(found: Distribution, shares: Sequence[float]) -> Sequence[str]:
    """Return latencies as text: those of the shares, and the highest."""
    latencies = (*(percentile(found, share) for share in shares), found.points[-1][0])
    return [units.quantity(latency, "s") for latency in latencies]


def percentile(distribution: Distribution, share: float) -> float:
    """Return the least latency, in s, that at least this share did not exceed."""
    points = distribution.points
    return next((t for t, reached in points if reached >= share - 1e-12), points[-1][0])


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
