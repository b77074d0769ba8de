"""Latency distributions: a plot that gives the tail its room, and the usual percentiles."""

from collections.abc import Sequence
from itertools import pairwise

from mydyno.analyse.result import Distribution
from mydyno.report import units
from mydyno.report.axis import logarithmic, nines
from mydyno.report.plot import Line, Plot, Point, Style, Tick, path, ticks

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


def plot(found: Sequence[tuple[Style, Distribution]]) -> Plot | None:
    """Return latency along x (log) and the share that was as fast up y, nines evenly spaced."""
    deepest = min(_DEEPEST, max((_top(d) for _, d in found), default=0.0))
    values = [t for _, d in found for t, s in d.points if t > 0 and s <= deepest]
    if not values:
        return None
    axis = logarithmic(_floor(found, min(values)), max(values), 5)
    levels = tuple(Tick(nines(s, deepest), units.share(s)) for s in _LEVELS if s < deepest)
    lines = []
    for style, d in found:
        points: list[Point | None] = [
            (axis.at(t), nines(s, deepest)) for t, s in _thinned(d.points) if t > 0 and s <= deepest
        ]
        lines.append(Line(style.css, style.name, path(points)))
    return Plot("Latency", ticks(axis, "s"), levels, (), tuple(lines))


def table(found: Sequence[tuple[Style, Distribution]]) -> tuple[list[str], list[list[str]]]:
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
