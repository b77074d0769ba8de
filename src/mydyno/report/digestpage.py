"""The page of a slow log's digest, from the JSON of `mydyno-probe`: totals, profile, classes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from markupsafe import Markup

from mydyno.report import units
from mydyno.report.charts import Axis, AxisTick, linear, logarithmic, pace, ticks
from mydyno.report.html import environment, policy, text


class ClassMetric(msgspec.Struct, frozen=True):
    """One attribute's values over the events of a class; the unit is in the attribute's name.

    `histogram` holds ``(low, high, count)``.
    """

    count: int = 0
    sum: float = 0.0
    mean: float = 0.0
    min: float = 0.0
    max: float = 0.0
    p50: float = 0.0
    p95: float = 0.0
    p99: float = 0.0
    histogram: list[tuple[float, float, int]] = []


class Example(msgspec.Struct, frozen=True):
    """The slowest statement of a class."""

    query: str = ""
    query_time_s: float = 0.0
    at: str | None = None
    paste: list[str] = []


class Class(msgspec.Struct, frozen=True):
    """The statements of one fingerprint; `share` is of all query time."""

    id: str
    fingerprint: str
    id32: str = ""
    verb: str = ""
    events: int = 0
    share: float = 0.0
    first_seen: str | None = None
    last_seen: str | None = None
    metrics: dict[str, ClassMetric] = {}
    flags: dict[str, int] = {}
    users: dict[str, int] = {}
    hosts: dict[str, int] = {}
    databases: dict[str, int] = {}
    example: Example | None = None


class File(msgspec.Struct, frozen=True):
    """A log that was read."""

    name: str


class Summary(msgspec.Struct, frozen=True):
    """Exact totals of what was read."""

    events: int = 0
    events_weighted: int = 0
    query_time_s: float = 0.0
    lock_time_s: float = 0.0
    rows_sent: int = 0
    rows_examined: int = 0
    classes: int = 0
    bytes: int = 0
    first_seen: str | None = None
    last_seen: str | None = None
    files: list[File] = []
    oddities: dict[str, int] = {}
    filtered: int = 0


class WindowShare(msgspec.Struct, frozen=True):
    """A class's share of a window."""

    id: str
    query_time_s: float = 0.0


class LogWindow(msgspec.Struct, frozen=True):
    """The statements that ended in one interval of time."""

    start: str
    end: str
    events: int = 0
    query_time_s: float = 0.0
    classes: list[WindowShare] = []


class Digest(msgspec.Struct, frozen=True):
    """The digest, its classes in the requested order."""

    digest: int
    summary: Summary
    classes: list[Class] = []
    windows: list[LogWindow] = []


def read(digest: Mapping[str, object]) -> Digest:
    """Return the values of a digest's JSON; raises `ValueError` naming the place of a fault."""
    found = msgspec.convert(digest, Digest, strict=False)
    if found.digest != 1:
        raise ValueError(
            f"unknown digest version {found.digest}; use the mydyno-probe of this version (1)"
        )
    return found


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

    xs: tuple[AxisTick, ...]
    ys: tuple[AxisTick, ...]
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
    bars = []
    for place, count in sorted(found.items()):
        left, right = (_edge(p) for p in (place, place + 1))
        tall = max(100 * count / most, 0.8)  # one event among millions can still be seen
        limits = f"{units.quantity(left, 's')} to {units.quantity(right, 's')}"
        across = (x.at(left), x.at(right))
        bars.append(_placed("c1", across, (0.0, tall), f"{limits}: {units.number(count)}"))
    return BarPlot(ticks(x, "s"), (AxisTick(100.0, units.number(most)),), tuple(bars))


def _edge(place: int) -> float:
    return float(10 ** (place / _A_DECADE))


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
    xs = tuple(
        AxisTick(100 * i / (_LABELS - 1), _clock(t, last - first)) for i, t in enumerate(times)
    )
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


_LEADING = 7  # classes with a colour of their own
_MANY = 3  # classes named in the first sentence
_SHOWN = 200  # classes shown in full: a page of more cannot be read, or opened on a phone
_LISTED = 2000  # classes in the profile
_SHORT = 160  # characters of a fingerprint in the profile
_LONG = 20_000  # characters of a statement
_TABLE_WINDOWS = 500  # rows of the windows' table
TIME = "query_time_s"

Ends = tuple[str, float]  # what a cell shows, and what it is sorted by


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """One class in the profile; `colour` is that of its bars, `shown` whether it is below."""

    rank: int
    id: str
    name: str
    colour: str
    share: float
    cells: tuple[Ends, ...]
    shown: bool


@dataclass(frozen=True, slots=True)
class ClassView:
    """One class with all figures."""

    rank: int
    found: Class
    finding: str
    fingerprint: str
    metrics: tuple[tuple[str, ...], ...]
    histogram: BarPlot | None
    counts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    example: str


def sentence(digest: Digest) -> str:
    """Return the summary sentence: total query time, and the share of the first classes."""
    total = digest.summary
    if not total.events:
        return "The log holds no statement."
    ranked = sorted((c.share for c in digest.classes), reverse=True)
    noun = "statement" if total.events == 1 else "statements"
    taken = f"{units.number(total.events)} {noun} took {units.span(total.query_time_s)}"
    if total.classes <= _MANY or len(ranked) < _MANY:
        return f"{taken}."
    share = 100 * sum(ranked[:_MANY])
    return f"{taken}; three of {units.number(total.classes)} classes took {share:.0f} % of it."


def _row(rank: int, found: Class, leading: Mapping[str, tuple[str, str]]) -> ProfileRow:
    time = found.metrics.get(TIME, ClassMetric())
    examined = found.metrics.get("rows_examined")
    sent = found.metrics.get("rows_sent")
    cells = (
        (units.span(time.sum), time.sum),
        (units.number(found.events), float(found.events)),
        *((units.quantity(v, "s"), v) for v in (time.mean, time.p95, time.p99, time.max)),
        *(
            (units.number(m.mean) if m else units.NOTHING, m.mean if m else -1.0)
            for m in (examined, sent)
        ),
    )
    name = _short(found.fingerprint, _SHORT)
    colour = leading.get(found.id, ("c0", ""))[0]
    return ProfileRow(rank, found.id, name, colour, found.share, cells, rank <= _SHOWN)


def _class(rank: int, found: Class) -> ClassView:
    time = found.metrics.get(TIME, ClassMetric())
    counts = (
        ("Users", found.users),
        ("Hosts", found.hosts),
        ("Databases", found.databases),
        ("Flags", found.flags),
    )
    return ClassView(
        rank,
        found,
        _finding(found, time),
        _cut(found.fingerprint, _LONG),
        tuple(_metric(name, m, found.events) for name, m in found.metrics.items()),
        histogram(time),
        tuple((name, tuple(_counted(of, found.events))) for name, of in counts if of),
        _cut(found.example.query, _LONG) if found.example else "",
    )


def _finding(found: Class, time: ClassMetric) -> str:
    calls = "call" if found.events == 1 else "calls"
    text = (
        f"{100 * found.share:.3g} % of the query time: {units.number(found.events)} {calls} of "
        f"{units.quantity(time.mean, 's')} on average, "
        f"99 of 100 within {units.quantity(time.p99, 's')}."
    )
    examined, sent = (
        found.metrics.get(n, ClassMetric()).sum for n in ("rows_examined", "rows_sent")
    )
    if sent and examined / sent >= 10:  # noqa: PLR2004 - below tenfold an index would not help
        text += f" It examined {units.number(round(examined / sent))} rows for each row sent."
    return text


def _metric(name: str, metric: ClassMetric, events: int) -> tuple[str, ...]:
    unit = "s" if name.endswith("_s") else "B" if name.endswith("_bytes") else ""
    values = (metric.sum, metric.mean, metric.min, metric.p95, metric.p99, metric.max)
    cells = (_formatted(v, unit) for v in values)
    heading = name.removesuffix("_s").removesuffix("_bytes").replace("_", " ").capitalize()
    of = "" if metric.count == events else f" ({units.number(metric.count)})"
    return (heading + of, *cells)


def _formatted(value: float, unit: str) -> str:
    if unit == "s":
        return units.span(value)
    return units.quantity(value, unit) if unit else units.number(value)


def _counted(of: Mapping[str, int], events: int) -> list[tuple[str, str]]:
    """Return names with their counts and shares, the most frequent first, the rest last."""
    ranked = sorted(of.items(), key=lambda pair: (pair[0] == "…", -pair[1]))
    return [
        (name or "(none)", f"{units.number(n)}, {100 * n / max(events, 1):.3g} %")
        for name, n in ranked
    ]


def _window_rows(digest: Digest) -> list[tuple[str, ...]]:
    names = {c.id: _short(c.fingerprint, 60) for c in digest.classes}
    rows: list[tuple[str, ...]] = []
    for window in digest.windows[:_TABLE_WINDOWS]:
        leader = max(window.classes, key=lambda part: part.query_time_s, default=None)
        most = names.get(leader.id, leader.id) if leader else units.NOTHING
        time = units.span(window.query_time_s)
        rows.append((window.start, units.number(window.events), time, most))
    return rows


def _short(text: str, most: int) -> str:
    flat = " ".join(text[: 4 * most].split())
    return flat if len(flat) <= most and len(text) <= 4 * most else f"{flat[: most - 1]}…"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({units.number(len(text))} characters)"


_SHEETS = ("template/report.css", "template/narrow.css", "template/digest.css")


def render_digest(digest: Mapping[str, object], title: str = "") -> str:
    """Return the page of what `mydyno-probe digest --json` wrote; every text in it is escaped.

    Without a title it has the names of the files that were read.  Raises `ValueError` for what is
    not such a digest, naming the place of the fault.
    """
    found = read(digest)
    ranked = sorted(found.classes, key=lambda c: -c.share)[:_LEADING]
    leading = {c.id: (f"c{i}", _short(c.fingerprint, 60)) for i, c in enumerate(ranked, 1)}
    profile = [_row(i, c, leading) for i, c in enumerate(found.classes[:_LISTED], 1)]
    classes = [_class(i, c) for i, c in enumerate(found.classes[:_SHOWN], 1)]
    names = ", ".join(Path(file.name).name for file in found.summary.files)
    style, script = "".join(text(name) for name in _SHEETS), text("template/sort.js")
    rendered = (
        environment()
        .get_template("digest.html")
        .render(
            title=title or names or "slow log",
            digest=found,
            sentence=sentence(found),
            oddities=[
                f"{k.replace('_', ' ')}: {n}" for k, n in found.summary.oddities.items() if n
            ],
            profile=profile,
            classes=classes,
            listed=(found.summary.classes, len(profile), len(classes)),
            windows=windows(found.windows, leading),
            legend=[(id_, css, name) for id_, (css, name) in leading.items()],
            table=_window_rows(found),
            policy=policy(style, [script]),
            style=Markup(style),  # noqa: S704 - our own files
            script=Markup(script),  # noqa: S704 - our own file
        )
    )
    return rendered.encode("utf-8", "replace").decode()  # a lone surrogate could not be written
