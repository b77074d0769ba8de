"""Plots as the template draws them: ticks in per cent, and paths on a square of 1000 by 1000."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mydyno.report import units
from mydyno.report.axis import Axis

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
class Tick:
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
    xs: tuple[Tick, ...]
    ys: tuple[Tick, ...]
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


def ticks(axis: Axis, unit: str) -> tuple[Tick, ...]:
    """Return an axis' ticks with their values in scaled units."""
    return tuple(Tick(axis.at(value), units.quantity(value, unit)) for value in axis.ticks)


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
