"""One sentence for each panel of a trial: the figures of its measured window."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from mydyno.report import timeseries, units
from mydyno.report.plot import Style
from mydyno.report.timeseries import TAIL, WORK, Panel
from mydyno.stats.result import Curve, Result, TrialView

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


def means(trial: TrialView, response: str) -> dict[str, float]:
    """Return the mean of each curve over the trial's window; absent where nothing was recorded.

    The response and the p99 are the trial's own metrics: a mean of percentiles would be none.
    Latencies of the disk are weighted by their operations, so that a quiet second counts little.
    """
    named = timeseries.of_trial(trial, response)
    inside = {name: _inside(curve, trial.window) for name, curve in named.items()}
    found = {}
    for name, samples in inside.items():
        weights = inside.get(_OPERATIONS.get(name, ""), {})
        weighed = [(v, weights.get(t_s, 1.0 if not weights else 0.0)) for t_s, v in samples.items()]
        total = sum(w for _, w in weighed)
        if total > 0:
            found[name] = sum(v * w for v, w in weighed) / total
    own = {
        WORK: trial.metrics.get(response),
        TAIL: trial.metrics.get(TAIL),
    }
    return found | {name: value for name, value in own.items() if value is not None}


def spans(trial: TrialView, response: str) -> dict[str, tuple[float, float, float]]:
    """Return the lowest, the median and the highest sample of each curve in the trial's window."""
    named = timeseries.of_trial(trial, response)
    inside = {name: _inside(curve, trial.window).values() for name, curve in named.items()}
    return {name: (min(s), median(s), max(s)) for name, s in inside.items() if s}


def of_treatments(result: Result, workload: str) -> dict[str, Means]:
    """Return each treatment's means: of its sampled trials under a workload, each counting once."""
    response = timeseries.response(result, workload)
    found: dict[str, list[dict[str, float]]] = {}
    for trial in timeseries.sampled(result):
        if trial.workload == workload:
            found.setdefault(trial.treatment, []).append(means(trial, response))
    return {treatment: _mean(each) for treatment, each in found.items()}


def table(of: Mapping[str, Means], styles: Sequence[Style], work: str) -> Usage:
    """Return what all treatments used of the main resources; what none recorded has no column.

    `work` is the heading of the response.
    """
    ordered = [s for s in styles if s.name in of]
    return _usage(of, ordered, styles[0], (UsageColumn(work, "/s", (WORK,)), *_COLUMNS))


def of_panel(panel: Panel, of: Mapping[str, Means], styles: Sequence[Style]) -> Usage:
    """Return the means of one panel's curves for each treatment."""
    ordered = [s for s in styles if any(name in of.get(s.name, {}) for name, _ in panel.curves)]
    columns = [
        UsageColumn(units.heading(label), panel.unit, (name,)) for name, label in panel.curves
    ]
    return _usage(of, ordered, styles[0], columns)


def _usage(
    of: Mapping[str, Means],
    ordered: Sequence[Style],
    baseline: Style,
    columns: Sequence[UsageColumn],
) -> Usage:
    shown = [c for c in columns if any(_sum(of[s.name], c.series) is not None for s in ordered)]
    base = of.get(baseline.name, {})
    rows = tuple((s, tuple(_cell(of[s.name], base, c) for c in shown)) for s in ordered)
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


def _mean(each: Sequence[Means]) -> dict[str, float]:
    names = dict.fromkeys(name for m in each for name in m)
    present = {name: [m[name] for m in each if name in m] for name in names}
    return {name: sum(values) / len(values) for name, values in present.items()}


def _inside(curve: Curve, window: tuple[float, float]) -> dict[float, float]:
    start_s, end_s = window
    pairs = zip(curve.t_s, curve.values, strict=False)
    return {t: v for t, v in pairs if start_s < t <= end_s and math.isfinite(v)}


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


def of_trial(trial: TrialView, response: str) -> WindowUse:
    """Return the means and ranges of one trial's window."""
    named = timeseries.of_trial(trial, response)
    return WindowUse(means(trial, response), spans(trial, response), timeseries.cores(named))


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
    parts = [f"{read.text(n, panel.unit)} {label}" for n, label in panel.curves if n in read.mean]
    return f"{units.listed(parts)}."


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
    parts = [f"the {who} used {read.text(n, 'cores')}" for n, who in panel.curves if n in read.mean]
    return units.sentence(units.listed(parts))


def _operations(panel: Panel, read: WindowUse) -> str:
    total = read.total("disk.reads", "disk.writes")
    return f"{_iops(total)}: {_listed(panel, read)}"


def _latency(panel: Panel, read: WindowUse) -> str:
    parts = [f"a {label} takes {read.text(n, 's')}" for n, label in panel.curves if n in read.mean]
    if not {"disk.reads", "disk.writes"} & read.mean.keys():
        return units.sentence(units.listed(parts))
    return f"At {_iops(read.total('disk.reads', 'disk.writes'))}, {units.listed(parts)}."


def _iops(rate: float) -> str:
    return f"{units.quantity(rate, '/s').removesuffix('/s').strip()} IOPS"


def _queue(_: Panel, read: WindowUse) -> str:
    most = units.quantity(read.spans["disk.queue"][2], "")
    return f"{read.text('disk.queue', '')} operations in flight on average, {most} at most."


def _network(panel: Panel, read: WindowUse) -> str:
    again = read.mean.get("net.retransmits", 0.0)
    sent = f" {units.quantity(again, '/s')} segments were sent again." if again > 0 else ""
    return _listed(panel, read) + _link(read.mean.get("net.used")) + sent


def _link(used: float | None) -> str:
    """Return the utilisation of the link, if its speed is known, and whether it was the limit."""
    if used is None:
        return ""
    limit = ": the link was the limit" if used >= FULL_LINK else ""
    return f" The link was {units.quantity(used, 'share')} full{limit}."


def _pressure(panel: Panel, read: WindowUse) -> str:
    ranked = sorted(((read.mean[n], label) for n, label in panel.curves if n in read.mean))
    parts = [f"{units.quantity(value, 'share')} {label}" for value, label in reversed(ranked)]
    return f"Some task waited {units.listed(parts)}."


def _pool(_: Panel, read: WindowUse) -> str:
    hits, dirty = read.text("innodb.hit_ratio", "share"), read.text("innodb.dirty_share", "share")
    parts = f"{hits} of page requests were hits" if "innodb.hit_ratio" in read.mean else ""
    if "innodb.dirty_share" in read.mean:
        parts += f"{'; ' if parts else ''}{dirty} of the pages were dirty"
    return f"{parts}."


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
    unit = "/s" if response in trial.metrics else "s"
    shown = f": {units.quantity(value, unit)}" if value is not None else ""
    return f"trial {trial.id}, block {trial.block + 1}{shown}"
