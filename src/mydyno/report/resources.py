"""Resources of the host in the page: trials side by side, their figures, and tables of use."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from mydyno.report import timeseries, units, verdicts
from mydyno.report.charts import Plot, Style
from mydyno.report.timeseries import TAIL, WORK, Panel, PanelSeries, legend, plots
from mydyno.stats.estimates import unit_of
from mydyno.stats.result import Curve, Result, TrialView

_PANES = 2
_CHART_POINTS = 600  # of one curve: more cannot be distinguished in half the width of a page
_FEWEST = 60
_ALL_POINTS = 250_000  # of all trials together: about 0.6 MB of the page

BUSY = ("cpu.user", "cpu.system", "cpu.irq")
_OPERATIONS = {
    "disk.read_latency": "disk.reads",
    "disk.write_latency": "disk.writes",
    "disk.flush_latency": "disk.flushes",
}


class UsageColumn(NamedTuple):
    """A column of resource use: the means of its series are added up."""

    heading: str
    unit: str
    series: tuple[str, ...]


_COLUMNS = (
    UsageColumn("CPU busy", "cores", BUSY),
    UsageColumn("CPU stolen", "cores", ("cpu.steal",)),
    UsageColumn("Disk reads", "/s", ("disk.reads",)),
    UsageColumn("Disk writes", "/s", ("disk.writes",)),
    UsageColumn("Disk flushes", "/s", ("disk.flushes",)),
    UsageColumn("Read latency", "s", ("disk.read_latency",)),
    UsageColumn("Write latency", "s", ("disk.write_latency",)),
    UsageColumn("Flush latency", "s", ("disk.flush_latency",)),
    UsageColumn("Link used", "share", ("net.used",)),
    UsageColumn("Buffer pool hits", "share", ("innodb.hit_ratio",)),
    UsageColumn("Redo", "B/s", ("innodb.redo_rate",)),
)

Means = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class UsageCell:
    """A mean as text, and its ratio to the baseline's, empty where there is none."""

    text: str
    ratio: str = ""


@dataclass(frozen=True, slots=True)
class Usage:
    """A table: one row for each treatment, the baseline first."""

    head: tuple[str, ...]
    rows: tuple[tuple[Style, tuple[UsageCell, ...]], ...]


_LEAST = 0.005  # of a core: less CPU steal is not mentioned
# Of a link's speed: frames have gaps, preambles and checksums that an interface does not count, so
# a saturated link shows 94 to 99 %.
FULL_LINK = 0.85  # on average over the window
NOT_RECORDED = "Not recorded in this trial."


@dataclass(frozen=True, slots=True)
class WindowUse:
    """A trial's window: means and ranges by name, and the number of processors."""

    mean: Mapping[str, float]
    spans: Mapping[str, tuple[float, float, float]]
    cores: float | None

    def text(self, name: str, unit: str) -> str:
        """Return a mean as text; a dash where it was not recorded."""
        return units.quantity(self.mean[name], unit) if name in self.mean else units.NOTHING

    def total(self, *names: str) -> float:
        """Return the sum of those means that were recorded."""
        return sum(self.mean.get(name, 0.0) for name in names)


@dataclass(frozen=True, slots=True)
class SampledTrial:
    """One trial with its figures, and by panel its series and its sentence."""

    trial: TrialView
    style: Style
    series: Mapping[str, PanelSeries]
    sentences: Mapping[str, str]
    use: WindowUse


@dataclass(frozen=True, slots=True)
class Pane:
    """One trial in one panel: the sentence, and the static drawing."""

    name: str
    sentence: str
    plot: Plot | None


@dataclass(frozen=True, slots=True)
class PanelView:
    """One panel: its legend, a pane for each trial shown first, and its means by workload."""

    panel: Panel
    legend: tuple[Style, ...]
    panes: tuple[Pane, ...]
    tables: tuple[tuple[str, Usage], ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """A trial in the selector: its index among those shown, and its label."""

    index: int
    label: str


@dataclass(frozen=True, slots=True)
class Resources:
    """The section; `first` are the trials that are chosen at first."""

    usages: tuple[tuple[str, Usage], ...]
    shown: tuple[SampledTrial, ...]
    groups: tuple[tuple[str, tuple[Choice, ...]], ...]
    first: tuple[int, ...]
    panels: tuple[PanelView, ...]
    missing: tuple[str, ...]
    cost: str


def resources(result: Result, ordered: Sequence[Style]) -> Resources | None:
    """Return the section, or None if no trial was sampled."""
    trials = timeseries.sampled(result)
    if not trials:
        return None
    responses = {t.workload: timeseries.response(result, t.workload) for t in trials}
    known = timeseries.panels(result)
    most = _ALL_POINTS // sum(len(t.gauges) + len(t.curves) for t in trials)
    most = min(max(most, _FEWEST), _CHART_POINTS)
    base = result.comparison.baseline  # the first also where it has no trial: ratios are to it
    styles = {base: Style(base, 0, 0), **{style.name: style for style in ordered}}
    ordered = [*styles.values()]
    every = []
    for trial in trials:
        response = responses[trial.workload]
        named, use = timeseries.of_trial(trial, response), of_trial(trial, response)
        series = {p.id: one for p in known if (one := timeseries.series(p, named, most))}
        sentences = {p.id: sentence(p, use) for p in known}
        every.append(SampledTrial(trial, styles[trial.treatment], series, sentences, use))
    of = {work: of_treatments(every, work) for work in responses}
    first = _first(result, every, responses)
    there = [p for p in known if any(p.id in each.series for each in every)]
    return Resources(
        tuple((w, table(of[w], ordered, r)) for w, r in responses.items()),
        tuple(every),
        tuple(_groups(result, every, responses)),
        first,
        tuple(_panel(p, [every[i] for i in first], of, ordered) for p in there),
        tuple(p.title for p in known if p not in there),
        _cost([means for each in of.values() for means in each.values()]),
    )


def _cost(each: Sequence[Means]) -> str:
    """Return the highest CPU use of the sampler, as a sentence; ``""`` if it was not recorded."""
    spent = [means["probe.cpu"] for means in each if "probe.cpu" in means]
    if not spent:
        return ""
    return f"The sampler used at most {units.quantity(max(spent), 'share')} of one core."


def _first(
    result: Result, every: Sequence[SampledTrial], responses: Mapping[str, str]
) -> tuple[int, ...]:
    """Return the first workload's baseline and leader, each by its median trial."""
    work, response = next(iter(responses.items()))
    middle = _medians(every, work, response)
    wanted = [result.comparison.baseline, verdicts.best(result.comparison, work), *middle]
    names = dict.fromkeys(name for name in wanted if name in middle)
    return tuple(middle[name] for name in names)[:_PANES]


def _medians(every: Sequence[SampledTrial], workload: str, response: str) -> dict[str, int]:
    """Return the place of each treatment's median trial by the response; of two the lower."""
    ranked: dict[str, list[tuple[float, int]]] = {}
    for i, shown in enumerate(every):
        if shown.trial.workload == workload:
            value = shown.trial.metrics.get(response, 0.0)
            ranked.setdefault(shown.trial.treatment, []).append((value, i))
    return {name: sorted(each)[(len(each) - 1) // 2][1] for name, each in ranked.items()}


def _groups(
    result: Result, every: Sequence[SampledTrial], responses: Mapping[str, str]
) -> list[tuple[str, tuple[Choice, ...]]]:
    """Return the medians of all treatments, and then each treatment's trials."""
    groups: list[tuple[str, tuple[Choice, ...]]] = []
    for work, response in responses.items():
        under = f", {work}" if len(responses) > 1 else ""
        choices = {
            i: Choice(i, f"{s.trial.treatment}, {label(s.trial, response)}")
            for i, s in enumerate(every)
            if s.trial.workload == work
        }
        middle = _medians(every, work, response)
        names = [n for n in verdicts.treatments(result.comparison) if n in middle]
        leading = tuple(choices[middle[name]] for name in names)
        groups.append((f"Median of each treatment{under}", leading))
        for name in names:
            mine = tuple(c for i, c in choices.items() if every[i].trial.treatment == name)
            groups.append((f"{name}{under}", mine))
    return groups


def _panel(
    panel: Panel,
    first: Sequence[SampledTrial],
    of: Mapping[str, Mapping[str, Means]],
    ordered: Sequence[Style],
) -> PanelView:
    drawn = plots(panel, [(s.trial, s.series.get(panel.id), s.style) for s in first])
    panes = (
        Pane(s.trial.treatment, s.sentences[panel.id], plot)
        for s, plot in zip(first, drawn, strict=True)
    )
    tables = ((work, of_panel(panel, means, ordered)) for work, means in of.items())
    return PanelView(
        panel,
        legend(panel),
        tuple(panes),
        tuple((work, table) for work, table in tables if table.rows),
    )


def of_trial(trial: TrialView, response: str) -> WindowUse:
    """Return the means and ranges of one trial's window; absent where nothing was recorded.

    The response and the p99 are the trial's own metrics: a mean of percentiles would be none.
    Latencies of the disk are weighted by their operations, so that a quiet second counts little.
    """
    named = timeseries.of_trial(trial, response)
    inside = {name: _inside(curve, trial.window) for name, curve in named.items()}
    found = {}
    for name, samples in inside.items():
        weights = inside.get(_OPERATIONS.get(name, ""), {})
        weighed = [(v, weights.get(t_s, 0.0) if weights else 1.0) for t_s, v in samples.items()]
        total = sum(w for _, w in weighed)
        if total > 0:
            found[name] = sum(v * w for v, w in weighed) / total
    for name, metric in ((WORK, response), (TAIL, TAIL)):
        if metric in trial.metrics:
            found[name] = trial.metrics[metric]
    spans = {n: (min(s), median(s), max(s)) for n, each in inside.items() if (s := each.values())}
    return WindowUse(found, spans, timeseries.cores(named))


def _inside(curve: Curve, window: tuple[float, float]) -> dict[float, float]:
    start_s, end_s = window
    pairs = zip(curve.t_s, curve.values, strict=False)
    return {t: v for t, v in pairs if start_s < t <= end_s and math.isfinite(v)}


def of_treatments(every: Sequence[SampledTrial], workload: str) -> dict[str, Means]:
    """Return each treatment's means over its trials under a workload, each counting once."""
    found: dict[str, dict[str, list[float]]] = {}
    for shown in every:
        if shown.trial.workload == workload:
            mine = found.setdefault(shown.trial.treatment, {})
            for name, mean in shown.use.mean.items():
                mine.setdefault(name, []).append(mean)
    return {
        treatment: {name: sum(values) / len(values) for name, values in mine.items()}
        for treatment, mine in found.items()
    }


def table(of: Mapping[str, Means], styles: Sequence[Style], response: str) -> Usage:
    """Return what all treatments used of the main resources; what none recorded has no column.

    The first column is the load's response.
    """
    work = UsageColumn(units.heading(response), unit_of(response), (WORK,))
    return _usage(of, styles, (work, *_COLUMNS))


def of_panel(panel: Panel, of: Mapping[str, Means], styles: Sequence[Style]) -> Usage:
    """Return the means of one panel's curves for each treatment that has any."""
    columns = [
        UsageColumn(units.heading(label), panel.unit, (name,)) for name, label in panel.curves
    ]
    names = [name for name, _ in panel.curves]
    there = {treatment: means for treatment, means in of.items() if {*names} & means.keys()}
    return _usage(there, styles, columns)


def _usage(
    of: Mapping[str, Means], styles: Sequence[Style], columns: Sequence[UsageColumn]
) -> Usage:
    """Return the columns that any treatment has; ratios are to the first style, the baseline."""
    shown = [c for c in columns if any(_sum(means, c.series) is not None for means in of.values())]
    base = of.get(styles[0].name, {})
    rows = tuple(
        (s, tuple(_cell(of[s.name], base, c) for c in shown)) for s in styles if s.name in of
    )
    return Usage(tuple(column.heading for column in shown), rows)


def _cell(of: Means, base: Means, column: UsageColumn) -> UsageCell:
    value, before = _sum(of, column.series), _sum(base, column.series)
    if value is None:
        return UsageCell(units.NOTHING)
    comparable = of is not base and before and value > 0 and column.unit != "share"
    return UsageCell(
        units.quantity(value, column.unit),
        units.times(value / before) if comparable and before else "",
    )


def _sum(of: Means, names: Sequence[str]) -> float | None:
    present = [of[name] for name in names if name in of]
    return sum(present) if present else None


def sentence(panel: Panel, read: WindowUse) -> str:
    """Return the sentence of a panel for this trial."""
    if not any(name in read.mean for name, _ in panel.curves):
        return NOT_RECORDED
    return _SENTENCES.get(panel.id, _ranged)(panel, read)


def _ranged(panel: Panel, read: WindowUse) -> str:
    """Return the mean and the range of the only curve."""
    name = panel.curves[0][0]
    if name not in read.spans:
        return NOT_RECORDED
    low, _, high = (units.quantity(x, panel.unit) for x in read.spans[name])
    return f"{read.text(name, panel.unit)} on average, from {low} to {high}."


def _tail(_: Panel, read: WindowUse) -> str:
    """Return the median: a mean of percentiles is no percentile."""
    if TAIL not in read.spans:
        return NOT_RECORDED
    low, middle, high = (units.quantity(x, "s") for x in read.spans[TAIL])
    return f"{middle} in the median second, from {low} to {high}."


def _listed(panel: Panel, read: WindowUse) -> str:
    return f"{_means(panel, read, '{mean} {label}')}."


def _means(panel: Panel, read: WindowUse, wording: str) -> str:
    """Return the mean of each recorded curve in these words, as a list."""
    shown = [(read.text(n, panel.unit), label) for n, label in panel.curves if n in read.mean]
    return units.listed([wording.format(mean=mean, label=label) for mean, label in shown])


def _cpu(_: Panel, read: WindowUse) -> str:
    busy = read.total(*BUSY)
    of = f" of {read.cores:.0f}" if read.cores else ""
    plural = "core" if read.cores == 1 or (not of and busy == 1) else "cores"
    parts = f"{units.quantity(busy, '')}{of} {plural} busy"
    if busy > 0:
        parts += f", {100 * read.total('cpu.user') / busy:.0f} % of it user"
    stolen = read.total("cpu.steal")
    lost = f"; {units.quantity(stolen, 'cores')} stolen by other guests" if stolen > _LEAST else ""
    return f"{parts}{lost}."


def _process(panel: Panel, read: WindowUse) -> str:
    return units.sentence(_means(panel, read, "the {label} used {mean}"))


def _operations(panel: Panel, read: WindowUse) -> str:
    total = read.total("disk.reads", "disk.writes")
    return f"{_iops(total)}: {_listed(panel, read)}"


def _latency(panel: Panel, read: WindowUse) -> str:
    means = _means(panel, read, "a {label} takes {mean}")
    if not {"disk.reads", "disk.writes"} & read.mean.keys():
        return units.sentence(means)
    return f"At {_iops(read.total('disk.reads', 'disk.writes'))}, {means}."


def _iops(rate: float) -> str:
    return f"{units.quantity(rate, '/s').removesuffix('/s').strip()} IOPS"


def _queue(_: Panel, read: WindowUse) -> str:
    most = units.quantity(read.spans["disk.queue"][2], "")
    return f"{read.text('disk.queue', '')} operations in flight on average, {most} at most."


def _network(panel: Panel, read: WindowUse) -> str:
    """Return the traffic, the use of the link if its speed is known, and whether it was full."""
    text, used = _listed(panel, read), read.mean.get("net.used")
    if used is not None:
        limit = ": the link was the limit" if used >= FULL_LINK else ""
        text += f" The link was {units.quantity(used, 'share')} full{limit}."
    again = read.total("net.retransmits")
    sent = f" {units.quantity(again, '/s')} segments were sent again." if again > 0 else ""
    return text + sent


def _pressure(panel: Panel, read: WindowUse) -> str:
    ranked = sorted(((read.mean[n], label) for n, label in panel.curves if n in read.mean))
    parts = [f"{units.quantity(value, 'share')} {label}" for value, label in reversed(ranked)]
    return f"Some task waited {units.listed(parts)}."


def _pool(_: Panel, read: WindowUse) -> str:
    shares = {
        "innodb.hit_ratio": "of page requests were hits",
        "innodb.dirty_share": "of the pages were dirty",
    }
    parts = [f"{read.text(n, 'share')} {words}" for n, words in shares.items() if n in read.mean]
    return f"{'; '.join(parts)}."


_SENTENCES: Mapping[str, Callable[[Panel, WindowUse], str]] = {
    "tail": _tail,
    "cpu": _cpu,
    "process": _process,
    "operations": _operations,
    "bytes": _listed,
    "latency": _latency,
    "queue": _queue,
    "network": _network,
    "pressure": _pressure,
    "pool": _pool,
    "pages": _listed,
}


def label(trial: TrialView, response: str) -> str:
    """Return the label of a trial in the selector."""
    value = trial.metrics.get(response, trial.metrics.get(TAIL))
    unit = unit_of(response) if response in trial.metrics else "s"
    shown = f": {units.quantity(value, unit)}" if value is not None else ""
    return f"trial {trial.id + 1}, block {trial.block + 1}{shown}"
