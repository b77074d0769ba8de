"""The content of the HTML page, in its order: text, plots and tables of a result."""

from collections.abc import Iterator, Sequence
from itertools import count

from mydyno.analyse.ends import describe_lost
from mydyno.analyse.result import Ratio, Result, Row, TrialView
from mydyno.report import curves, distributions, dots, findings, multiples, units, verdicts
from mydyno.report.curves import Chart
from mydyno.report.forest import Forest, forest
from mydyno.report.maineffects import parts
from mydyno.report.plot import Style, styles
from mydyno.report.resources import resources
from mydyno.report.views import ChartView, LatencyView, Page, RowView, TrialRow, WorkloadView
from mydyno.report.warned import warned

_MANY = 8  # curves: more hide each other, so the rest are off at first


def page(result: Result) -> Page:
    """Return the page of a result."""
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
        _warnings(result),
        resources(result, ordered),
        parts(compared, result.margin),
    )


def _workload(
    result: Result, workload: str, ordered: Sequence[Style], ids: Iterator[str]
) -> WorkloadView:
    compared = result.comparison
    rows = verdicts.rows(compared, workload)
    axis = forest([row.effect for row in rows if row.effect], result.margin)
    response = curves.response(result, workload)
    trials = [t for t in result.trials if t.workload == workload]
    unit = next((row.value.unit for row in rows if row.value), "")
    return WorkloadView(
        workload,
        response,
        axis,
        findings.of_forest(rows, compared.baseline),
        tuple(_row(row, rows, axis, ordered) for row in rows),
        tuple(_chart(c, next(ids), result, ordered) for c in curves.charts(result, workload)),
        _latency(result, workload, ordered),
        dots.plot(trials, ordered, response, unit),
    )


def guards(rows: Sequence[Row]) -> list[str]:
    """Return the guards that any row has, in order."""
    return list(dict.fromkeys(name for row in rows for name in row.guards))


def _row(row: Row, rows: Sequence[Row], axis: Forest, ordered: Sequence[Style]) -> RowView:
    texts = [(name, _texts(row.guards.get(name))) for name in guards(rows)]
    return RowView(
        next(style for style in ordered if style.name == row.name),
        row,
        units.quantity(row.value.estimate, row.value.unit) if row.value else units.NOTHING,
        _texts(row.effect),
        axis.whisker(row.effect) if row.effect else None,
        tuple((units.heading(name), text) for name, text in texts),
        verdicts.shown(row.verdict),
        row.durability == "weaker",
        units.measured(row.trials, row.ends),
        describe_lost(row.ends) if row.ends.lost else "",
    )


def _texts(ratio: Ratio | None) -> tuple[str, str, str] | None:
    return units.interval(ratio) if ratio else None


def _chart(chart: Chart, id_: str, result: Result, ordered: Sequence[Style]) -> ChartView:
    measured = [s for s in ordered if curves.of_treatment(chart, s.name)]
    table = tuple(tuple(row) for row in multiples.table(chart, measured))
    drawn = tuple(multiples.multiples(chart, ordered))
    head = ("Until", *(s.name for s in measured))
    return ChartView(id_, chart, findings.of_chart(chart, result.comparison), drawn, head, table)


def _latency(result: Result, workload: str, ordered: Sequence[Style]) -> LatencyView | None:
    found = distributions.of_workload(result.distributions, workload, ordered)
    drawn = distributions.plot(found)
    if drawn is None:
        return None
    head, table = distributions.table(found)
    kinds_head, kinds = distributions.kinds(result.distributions, workload, ordered)
    return LatencyView(
        findings.of_latency(found, result.comparison),
        drawn,
        tuple(style for style, _ in found),
        tuple(head),
        tuple(tuple(row) for row in table),
        tuple(kinds_head),
        tuple(tuple(row) for row in kinds),
    )


def _trial(result: Result, trial: TrialView, drawn: dict[str, Style]) -> TrialRow:
    rows = [r for r in result.comparison.treatments if r.workload == trial.workload]
    unit = next((row.value.unit for row in rows if row.value), "")
    start, end = trial.window
    value = trial.metrics.get(curves.response(result, trial.workload))
    tail = trial.metrics.get(curves.TAIL)
    return TrialRow(
        trial,
        drawn[trial.treatment],
        units.NOTHING if value is None else units.quantity(value, unit),
        units.NOTHING if tail is None else units.quantity(tail, "s"),
        f"{start:g} to {end:g} s" if end > start else units.NOTHING,
    )


def _warnings(result: Result) -> tuple[tuple[str, str], ...]:
    """Return each warning with what it is about; the campaign's own come first."""
    return tuple((who or "the campaign", text) for who, text in warned(result.comparison))


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
