"""One sentence for each panel of a trial: the figures of its measured window."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mydyno.analyse.result import TrialView
from mydyno.report import curves, panels, units, usage
from mydyno.report.panels import Panel

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
    named = panels.of_trial(trial, response)
    return WindowUse(
        usage.means(trial, response), usage.spans(trial, response), panels.cores(named)
    )


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
    if curves.TAIL not in read.spans:
        return NOT_RECORDED
    low, middle, high = (units.quantity(x, "s") for x in read.spans[curves.TAIL])
    return f"{middle} in the median second, from {low} to {high}."


def _listed(panel: Panel, read: WindowUse) -> str:
    parts = [f"{read.text(n, panel.unit)} {label}" for n, label in panel.curves if n in read.mean]
    return f"{units.listed(parts)}."


def _cpu(_: Panel, read: WindowUse) -> str:
    busy = read.total(*usage.BUSY)
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
    value = trial.metrics.get(response, trial.metrics.get(curves.TAIL))
    unit = "/s" if response in trial.metrics else "s"
    shown = f": {units.quantity(value, unit)}" if value is not None else ""
    return f"trial {trial.id}, block {trial.block + 1}{shown}"
