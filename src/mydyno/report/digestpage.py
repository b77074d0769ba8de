"""The digest's page as values: totals, the profile, and each class."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mydyno.report import bars, units
from mydyno.report.bars import BarPlot
from mydyno.report.slowlog import Class, ClassMetric, Digest

_LEADING = 7  # classes with a colour of their own
_MANY = 3  # classes named in the first sentence
_SHOWN = 200  # classes shown in full: a page of more cannot be read, or opened on a phone
_LISTED = 2000  # classes in the profile
_SHORT = 160  # characters of a fingerprint in the profile
_LONG = 20_000  # characters of a statement
_WINDOWS = 500  # rows of the windows' table
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


@dataclass(frozen=True, slots=True)
class DigestPage:
    """The page."""

    digest: Digest
    sentence: str
    oddities: tuple[str, ...]
    rows: tuple[ProfileRow, ...]
    classes: tuple[ClassView, ...]
    windows: BarPlot | None
    legend: tuple[tuple[str, str, str], ...]
    table: tuple[tuple[str, ...], ...]


def page(digest: Digest) -> DigestPage:
    """Return the page of a digest."""
    leading = _colours(digest)
    return DigestPage(
        digest,
        sentence(digest),
        tuple(f"{k.replace('_', ' ')}: {n}" for k, n in digest.summary.oddities.items() if n),
        tuple(_row(i, c, leading) for i, c in enumerate(digest.classes[:_LISTED], 1)),
        tuple(_class(i, c) for i, c in enumerate(digest.classes[:_SHOWN], 1)),
        bars.windows(digest.windows, leading),
        tuple((id_, css, name) for id_, (css, name) in leading.items()),
        tuple(_window_rows(digest)),
    )


def sentence(digest: Digest) -> str:
    """Return the summary sentence: total query time, and the share of the first classes."""
    total = digest.summary
    if not total.events:
        return "The log holds no statement."
    ranked = sorted((c.share for c in digest.classes), reverse=True)
    noun = "statement" if total.events == 1 else "statements"
    time = units.span(total.query_time_s)
    taken = f"{units.number(total.events)} {noun} took {time}"
    if total.classes <= _MANY or len(ranked) < _MANY:
        return f"{taken}."
    share = 100 * sum(ranked[:_MANY])
    return f"{taken}; three of {units.number(total.classes)} classes took {share:.0f} % of it."


def _colours(digest: Digest) -> dict[str, tuple[str, str]]:
    """Return the style and the name of the classes that took most time, by id."""
    ranked = sorted(digest.classes, key=lambda c: -c.share)[:_LEADING]
    return {c.id: (f"c{i}", _short(c.fingerprint, 60)) for i, c in enumerate(ranked, 1)}


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
        bars.histogram(time),
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
    for window in digest.windows[:_WINDOWS]:
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


def listed(digest: Digest) -> Sequence[int]:
    """Return how many classes there are, in the profile, and in full."""
    return (
        digest.summary.classes,
        min(len(digest.classes), _LISTED),
        min(len(digest.classes), _SHOWN),
    )
