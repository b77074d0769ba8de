"""The content of the HTML page, in its order: text, plots and tables of a result."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from mydyno.report import charts, timeseries, units, verdicts
from mydyno.report.charts import DotPlot, Forest, Plot, Style, Table, Whisker, forest, styles
from mydyno.report.names import legend, short_names
from mydyno.report.redact import mapped
from mydyno.report.resources import Resources, resources
from mydyno.report.timeseries import Chart
from mydyno.report.verdicts import UNFIT, EffectsView, VerdictLabel, parts, warned
from mydyno.report.words import describe_lost
from mydyno.stats.result import ChangeView, Comparison, Distribution, Ratio, Result, Row, TrialView

_FEW = 4  # names in a sentence


def of_forest(rows: Sequence[Row], baseline: str) -> str:
    """Return which intervals exclude ratio 1; those of unfit treatments are not used."""
    shown = [
        (row.name, row.effect)
        for row in rows
        if row.effect and row.name != baseline and row.verdict not in UNFIT
    ]
    found = {
        "entirely above 1": [name for name, effect in shown if effect.low > 1],
        "entirely below 1": [name for name, effect in shown if effect.high < 1],
        "including 1: no significant difference": [
            name for name, effect in shown if effect.low <= 1 <= effect.high
        ],
    }
    sentences = [
        f"{_few(names)}: {'interval' if len(names) == 1 else 'intervals'} {where}."
        for where, names in found.items()
        if names
    ]
    if lost := [row.name for row in rows if row.ends.lost and row.verdict in UNFIT]:
        what = "trials failed or stalled, so the other trials are not used"
        sentences.append(f"{_few(lost)}: {what}.")
    return " ".join(sentences) or "Nothing could be compared with the baseline."


def _few(names: Sequence[str]) -> str:
    return units.listed(names) if len(names) <= _FEW else f"{len(names)} treatments"


def of_chart(chart: Chart, compared: Comparison) -> str:
    """Return the middle of the measured windows, for the leader and the baseline."""
    values = [
        f"{units.quantity(value, chart.unit)} with {name}"
        for name in _leading(compared, chart.workload)
        if (value := timeseries.middle(chart, name)) is not None
    ]
    if not values:
        return "No trial of the leader or the baseline has this curve."
    warm = " The shaded warm-up is not used." if chart.warm[1] > 0 else ""
    return f"In the measured window, the median is {units.listed(values)}.{warm}"


def of_latency(found: Sequence[tuple[Style, Distribution]], compared: Comparison) -> str:
    """Return the p99 latency of the leader and of the baseline."""
    workload = found[0][1].workload
    named = {style.name: d for style, d in found}
    values = [
        f"{units.quantity(charts.percentile(named[n], 0.99), 's')} with {n}"
        for n in _leading(compared, workload)
        if n in named
    ]
    return f"99 of 100 operations finished within {units.listed(values)}." if values else ""


def _leading(compared: Comparison, workload: str) -> list[str]:
    """Return the treatment worth naming first and the baseline, or a few if none leads."""
    leader = verdicts.best(compared, workload)
    if leader is None:
        return verdicts.treatments(compared)[:_FEW]
    return list(dict.fromkeys([leader, compared.baseline]))


@dataclass(frozen=True, slots=True)
class RowView:
    """One row of the verdict table; `lost` counts in words the trials that were not measured."""

    style: Style
    row: Row
    value: str
    effect: tuple[str, str, str] | None
    whisker: Whisker | None
    guards: tuple[tuple[str, tuple[str, str, str] | None], ...]
    verdict: VerdictLabel
    trials: str
    lost: str = ""

    @property
    def fit(self) -> bool:
        """Return whether its interval may be read as an effect."""
        return self.row.verdict not in UNFIT


@dataclass(frozen=True, slots=True)
class ChartView:
    """One quantity over time: what is drawn by script, and the same without."""

    id: str
    chart: Chart
    finding: str
    multiples: Sequence[Plot]
    table: Table


@dataclass(frozen=True, slots=True)
class LatencyView:
    """The latency distributions under one workload."""

    finding: str
    plot: Plot
    styles: tuple[Style, ...]
    table: Table
    kinds: Table


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """Everything that is shown of one workload."""

    name: str
    response: str
    forest: Forest
    finding: str
    rows: tuple[RowView, ...]
    charts: tuple[ChartView, ...]
    latency: LatencyView | None
    dots: DotPlot | None


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One line of the trials' table."""

    trial: TrialView
    style: Style
    value: str
    tail: str
    window: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Background:
    """What was measured, with what: a sentence on the windows, and versions and sizes by name.

    `full` gives the full name of each treatment, `legend` explains the short ones of a grid.
    """

    windows: str
    ran: Mapping[str, str]
    full: Mapping[str, str]
    legend: Sequence[str]


@dataclass(frozen=True, slots=True)
class Page:
    """The entire page; `warnings` are pairs of subject and message, the campaign's own first."""

    result: Result
    styles: tuple[Style, ...]
    shown: frozenset[str]
    workloads: tuple[WorkloadView, ...]
    changes: tuple[tuple[Style, tuple[ChangeView, ...]], ...]
    trials: tuple[TrialRow, ...]
    warnings: tuple[tuple[str, str], ...]
    resources: Resources | None
    parts: tuple[EffectsView, ...]
    about: Background

    @property
    def weakest(self) -> list[str]:
        """Return the treatments that weaken durability."""
        rows = self.result.comparison.treatments
        return list(dict.fromkeys(row.name for row in rows if row.durability == "weaker"))

    @property
    def has_baseline(self) -> bool:
        """Return whether the baseline is one of the treatments; a screen has none."""
        return any(style.name == self.result.comparison.baseline for style in self.styles)

    @property
    def has_charts(self) -> bool:
        """Return whether any trial left a curve."""
        return any(work.charts for work in self.workloads)

    @property
    def lost(self) -> int:
        """Return the number of trials that did not end well."""
        return sum(trial.status != "ok" for trial in self.result.trials)


_MANY = 8  # curves: more hide each other, so the rest are off at first


def page(result: Result) -> Page:
    """Return the page of a result."""
    names = [row.name for row in result.comparison.treatments]
    names += [trial.treatment for trial in result.trials]
    short = short_names(names)
    if any(name != text for name, text in short.items()):
        result = mapped(result, lambda text: short.get(text, text))
    compared = result.comparison
    seen = [*verdicts.treatments(compared), *(trial.treatment for trial in result.trials)]
    drawn = styles(list(dict.fromkeys(seen or [compared.baseline])))
    ordered = tuple(drawn.values())
    ids = (f"chart-{i}" for i in count())
    works = verdicts.workloads(compared)
    return Page(
        result,
        ordered,
        frozenset(_first_shown(result, ordered)),
        tuple(_workload(result, w, ordered, ids) for w in works),
        tuple((s, tuple(result.changes.get(s.name, ()))) for s in ordered),
        tuple(_trial(result, t, drawn) for t in result.trials),
        tuple((who or "the campaign", text) for who, text in warned(compared)),
        resources(result, ordered),
        parts(compared, result.margin),
        Background(
            of_windows(result),
            _ran(result),
            {style.name: style.name for style in ordered} | {s: n for n, s in short.items()},
            legend(names),
        ),
    )


def of_windows(result: Result) -> str:
    """Return how long the measured windows were, and when they began, in a sentence."""
    windows = [
        t.window
        for t in result.trials
        if t.status == "ok" and not t.soak and t.window[1] > t.window[0]
    ]
    if not windows:
        return ""
    lengths, starts = (_range(x) for x in ([b - a for a, b in windows], [a for a, _ in windows]))
    return f"The measured windows were {lengths} long; they began {starts} after their loads did."


def _range(seconds: Sequence[float]) -> str:
    low, high = f"{min(seconds):.3g}", f"{max(seconds):.3g}"
    return f"{low} s" if low == high else f"{low} to {high} s"


def _ran(result: Result) -> dict[str, str]:
    """Return the versions, the machine, and the sizes of memory, pool and data."""
    facts = {name: value for of in result.facts.values() for name, value in of.items()}
    found = {**result.versions}
    found |= {n: facts[n] for n in ("processor", "memory", "system", "kernel") if n in facts}
    pool = "innodb_buffer_pool_size"
    for name in (pool, f"{pool} (stock)"):
        if facts.get(name, "").isdigit():
            found["buffer pool"] = units.quantity(float(facts[name]), "B")
    for row in result.comparison.treatments:
        if row.name == result.comparison.baseline and (size := row.plain.get("storage_bytes")):
            found[f"data after a trial of {row.workload}"] = units.quantity(size.estimate, "B")
    return found or {"versions": "not recorded"}


def _workload(
    result: Result, workload: str, ordered: Sequence[Style], ids: Iterator[str]
) -> WorkloadView:
    compared = result.comparison
    rows = verdicts.rows(compared, workload)
    axis = forest([row.effect for row in rows if row.effect], result.margin)
    response = timeseries.response(result, workload)
    trials = [t for t in result.trials if t.workload == workload]
    unit = next((row.value.unit for row in rows if row.value), "")
    return WorkloadView(
        workload,
        response,
        axis,
        of_forest(rows, compared.baseline),
        tuple(_row(row, rows, axis, ordered) for row in rows),
        tuple(
            ChartView(
                next(ids),
                chart,
                of_chart(chart, compared),
                timeseries.multiples(chart, ordered, compared.baseline),
                timeseries.multiples_table(chart, ordered),
            )
            for chart in timeseries.charts(result, workload)
        ),
        _latency(result, workload, ordered),
        charts.dot_plot(trials, ordered, response, unit),
    )


def _row(row: Row, rows: Sequence[Row], axis: Forest, ordered: Sequence[Style]) -> RowView:
    guards = dict.fromkeys(name for each in rows for name in each.guards)
    return RowView(
        next(style for style in ordered if style.name == row.name),
        row,
        units.measurement(row.value.estimate, row.value.unit) if row.value else units.NOTHING,
        _texts(row.effect),
        axis.whisker(row.effect) if row.effect else None,
        tuple((units.heading(name), _texts(row.guards.get(name))) for name in guards),
        verdicts.shown(row.verdict),
        units.measured(row.trials, row.ends),
        describe_lost(row.ends) if row.ends.lost else "",
    )


def _texts(ratio: Ratio | None) -> tuple[str, str, str] | None:
    return units.interval(ratio) if ratio else None


def _latency(result: Result, workload: str, ordered: Sequence[Style]) -> LatencyView | None:
    found = charts.of_workload(result.distributions, workload, ordered)
    drawn = charts.distribution_plot(found)
    if drawn is None:
        return None
    return LatencyView(
        of_latency(found, result.comparison),
        drawn,
        tuple(style for style, _ in found),
        charts.distribution_table(found),
        charts.kinds(result.distributions, workload, ordered),
    )


def _trial(result: Result, trial: TrialView, drawn: dict[str, Style]) -> TrialRow:
    rows = [r for r in result.comparison.treatments if r.workload == trial.workload]
    unit = next((row.value.unit for row in rows if row.value), "")
    start, end = trial.window
    value = trial.metrics.get(timeseries.response(result, trial.workload))
    tail = trial.metrics.get(timeseries.TAIL)
    return TrialRow(
        trial,
        drawn[trial.treatment],
        units.NOTHING if value is None else units.measurement(value, unit),
        units.NOTHING if tail is None else units.quantity(tail, "s"),
        f"{start:g} to {end:g} s" if end > start else units.NOTHING,
        trial.error or ("" if trial.status == "ok" else "no reason was recorded"),
    )


def _first_shown(result: Result, ordered: Sequence[Style]) -> list[str]:
    """Return the treatments drawn at first: all, or of many the baseline and the strongest."""
    compared = result.comparison
    if len(ordered) <= _MANY:
        return [style.name for style in ordered]
    ranked = sorted(
        (r for work in verdicts.workloads(compared) for r in verdicts.leading(compared, work)),
        key=lambda row: -verdicts.gain(compared, row),
    )
    leading = dict.fromkeys([compared.baseline, compared.winner, *(row.name for row in ranked)])
    return [name for name in leading if name][:_MANY]
