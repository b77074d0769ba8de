"""Bars: a histogram on a logarithmic axis, and query time in windows stacked by class."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from mydyno.report import units
from mydyno.report.axis import Axis, linear, logarithmic, pace
from mydyno.report.plot import Tick, ticks
from mydyno.report.slowlog import ClassMetric, LogWindow

_A_DECADE = 8  # bars: each 1.33 times as wide as the one before it
_WINDOWS = 240  # bars side by side: more are not visible
_LABELS = 5
_SIDE = 10  # drawing units in one per cent


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar on a square of 1000 by 1000, y downwards, and its tooltip."""

    css: str
    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True, slots=True)
class BarPlot:
    """Bars with their axes."""

    xs: tuple[Tick, ...]
    ys: tuple[Tick, ...]
    bars: tuple[Bar, ...]


def histogram(metric: ClassMetric) -> BarPlot | None:
    """Return how many events took how long, or None without any time above 0."""
    found: dict[int, int] = {}
    for low, high, count in metric.histogram:
        middle = math.sqrt(low * high) if low > 0 else high
        if count > 0 and middle > 0 and math.isfinite(middle):
            place = math.floor(math.log10(middle) * _A_DECADE + 1e-9)
            found[place] = found.get(place, 0) + count
    if not found:
        return None
    first, last = min(found) - 1, max(found) + 2
    x, most = logarithmic(_edge(first), _edge(last), _LABELS), max(found.values())
    bars = tuple(_bar(place, count, most, x) for place, count in sorted(found.items()))
    return BarPlot(ticks(x, "s"), (Tick(100.0, units.number(most)),), bars)


def _edge(place: int) -> float:
    return float(10 ** (place / _A_DECADE))


def _bar(place: int, count: int, most: int, x: Axis) -> Bar:
    left, right = x.at(_edge(place)), x.at(_edge(place + 1))
    tall = max(100 * count / most, 0.8)  # one event among millions can still be seen
    limits = (units.quantity(_edge(p), "s") for p in (place, place + 1))
    label = f"{' to '.join(limits)}: {units.number(count)}"
    return _placed("c1", (left, right), (0.0, tall), label)


def windows(found: Sequence[LogWindow], colours: Mapping[str, tuple[str, str]]) -> BarPlot | None:
    """Return query time over time, stacked by class, or None without any.

    `colours` gives a class's style and name by its id; all others are grey, on top.
    """
    timed = [
        (start, end, w) for w in found if (start := _seconds(w.start)) < (end := _seconds(w.end))
    ]
    if not timed or not any(w.query_time_s > 0 for w in found):
        return None
    merged = _merged(timed)
    first, last = merged[0][0], max(end for _, end, _ in merged)
    y = _upright(max(sum(parts.values()) for _, _, parts in merged))
    bars: list[Bar] = []
    for start, end, parts in merged:
        across = (100 * (start - first) / (last - first), 100 * (end - first) / (last - first))
        bars += _stacked(across, parts, y, colours, _clock(start, last - first))
    step = (last - first) / (_LABELS - 1)
    times = [first + i * step for i in range(_LABELS)]
    xs = tuple(Tick(100 * i / (_LABELS - 1), _clock(t, last - first)) for i, t in enumerate(times))
    return BarPlot(xs, ticks(y, "s"), tuple(bars))


def _upright(most_s: float) -> Axis:
    """Return an axis of seconds, in steps that people count minutes and hours in."""
    if most_s < 120:  # noqa: PLR2004 - two minutes; below, seconds are more precise
        return linear(0.0, most_s, 3)
    step = pace(most_s, 3)
    count = math.ceil(most_s / step - 1e-9)
    return Axis(0.0, count * step, log=False, ticks=tuple(i * step for i in range(count + 1)))


def _merged(
    timed: Sequence[tuple[float, float, LogWindow]],
) -> list[tuple[float, float, dict[str, float]]]:
    """Return at most so many windows, neighbours taken together, with query time by class."""
    wide = -(-len(timed) // _WINDOWS)
    merged = []
    for i in range(0, len(timed), wide):
        group = timed[i : i + wide]
        parts: dict[str, float] = {}
        for _, _, window in group:
            rest = window.query_time_s
            for part in window.classes:
                parts[part.id] = parts.get(part.id, 0.0) + part.query_time_s
                rest -= part.query_time_s
            parts[""] = parts.get("", 0.0) + max(rest, 0.0)
        merged.append((group[0][0], group[-1][1], parts))
    return merged


def _stacked(
    across: tuple[float, float],
    parts: Mapping[str, float],
    y: Axis,
    colours: Mapping[str, tuple[str, str]],
    at: str,
) -> list[Bar]:
    named = [(style, name, parts[id_]) for id_, (style, name) in colours.items() if id_ in parts]
    rest = sum(value for id_, value in parts.items() if id_ not in colours)
    bars, floor = [], 0.0
    for style, name, value in [*named, ("c0", "all others", rest)]:
        if value > 0:
            label = f"{at}, {name}: {units.span(value)}"
            bars.append(_placed(style, across, (y.at(floor), y.at(floor + value)), label))
            floor += value
    return bars


def _placed(css: str, x: tuple[float, float], y: tuple[float, float], label: str) -> Bar:
    left, right, low, high = (round(_SIDE * v, 1) for v in (*x, *y))
    size = (round(right - left, 1), round(high - low, 1))
    return Bar(css, left, round(1000 - high, 1), *size, label)


def _seconds(text: str) -> float:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return math.nan
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _clock(at_s: float, span_s: float) -> str:
    """Return a time of day, with the date or the second where the length of the log asks for it."""
    at = datetime.fromtimestamp(at_s, UTC)
    short, day = 600.0, 86_400.0
    if span_s >= day:
        return f"{at:%m-%d %H:%M}"
    return f"{at:%H:%M:%S}" if span_s < short else f"{at:%H:%M}"
