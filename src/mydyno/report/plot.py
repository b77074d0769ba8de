"""Plots as the template draws them: ticks in per cent, and paths on a square of 1000 by 1000."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mydyno.report import units

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
