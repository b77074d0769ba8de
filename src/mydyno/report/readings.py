"""One sentence for each strip of a trial: what its measured window says."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mydyno.analyse.result import TrialView
from mydyno.report import curves, strips, units, usage
from mydyno.report.strips import Strip

_LEAST = 0.005  # of a core: less stolen time than this is not worth a word
# Of a link's speed: frames have gaps, preambles and checks that an interface does not count, and
# a link that sends without a pause shows 94 to 99 % (124 of 125 MB/s in the third article).
FULL_LINK = 0.85  # on average; the seconds of a full one are not all alike
NOT_RECORDED = "Not recorded in this trial."


@dataclass(frozen=True, slots=True)
class Reading:
    """What a trial's window holds: means and spans by name, and the number of processors."""

    mean: Mapping[str, float]
    spans: Mapping[str, tuple[float, float, float]]
    cores: float | None

    def text(self, name: str, unit: str) -> str:
        """Return a mean as text; a dash where it was not recorded."""
        return units.quantity(self.mean[name], unit) if name in self.mean else units.NOTHING

    def total(self, *names: str) -> float:
        """Return the sum of those means that were recorded."""
        return sum(self.mean.get(name, 0.0) for name in names)


def of_trial(trial: TrialView, response: str) -> Reading:
    """Return the reading of one trial's window."""
    named = strips.of_trial(trial, response)
    return Reading(usage.means(trial, response), usage.spans(trial, response), strips.cores(named))


def sentence(strip: Strip, read: Reading) -> str:
    """Return what one should see in a strip of this trial."""
    if not any(name in read.mean for name, _ in strip.curves):
        return NOT_RECORDED
    return _SAID.get(strip.id, _ranged)(strip, read)


def _ranged(strip: Strip, read: Reading) -> str:
    """Return the mean of the only curve, and between what it moved."""
    name = strip.curves[0][0]
    if name not in read.spans:
        return NOT_RECORDED
    low, _, high = (units.quantity(x, strip.unit) for x in read.spans[name])
    return f"{read.text(name, strip.unit)} on average, from {low} to {high}."


def _tail(_: Strip, read: Reading) -> str:
    """Return the median: a mean of percentiles would be nobody's percentile."""
    if curves.TAIL not in read.spans:
        return NOT_RECORDED
    low, middle, high = (units.quantity(x, "s") for x in read.spans[curves.TAIL])
    return f"{middle} in the median second, from {low} to {high}."


def _listed(strip: Strip, read: Reading) -> str:
    said = [f"{read.text(n, strip.unit)} {label}" for n, label in strip.curves if n in read.mean]
    return f"{units.listed(said)}."


def _cpu(_: Strip, read: Reading) -> str:
    busy = read.total(*usage.BUSY)
    of = f" of {read.cores:.0f}" if read.cores else ""
    plural = "core" if read.cores == 1 or (not of and busy == 1) else "cores"
    said = f"{units.quantity(busy, '')}{of} {plural} busy"
    if busy > 0:
        said += f", {100 * read.total('cpu.user') / busy:.0f} % of it user"
    stolen = read.total("cpu.steal")
    lost = f"; {units.quantity(stolen, 'cores')} stolen by other guests" if stolen > _LEAST else ""
    return f"{said}{lost}."


def _process(strip: Strip, read: Reading) -> str:
    said = [f"the {who} used {read.text(n, 'cores')}" for n, who in strip.curves if n in read.mean]
    return units.sentence(units.listed(said))


def _operations(strip: Strip, read: Reading) -> str:
    total = read.total("disk.reads", "disk.writes")
    return f"{_iops(total)}: {_listed(strip, read)}"


def _latency(strip: Strip, read: Reading) -> str:
    said = [f"a {label} takes {read.text(n, 's')}" for n, label in strip.curves if n in read.mean]
    if not {"disk.reads", "disk.writes"} & read.mean.keys():
        return units.sentence(units.listed(said))
    return f"At {_iops(read.total('disk.reads', 'disk.writes'))}, {units.listed(said)}."


def _iops(rate: float) -> str:
    return f"{units.quantity(rate, '/s').removesuffix('/s').strip()} IOPS"


def _queue(_: Strip, read: Reading) -> str:
    most = units.quantity(read.spans["disk.queue"][2], "")
    return f"{read.text('disk.queue', '')} operations in flight on average, {most} at most."


def _network(strip: Strip, read: Reading) -> str:
    again = read.mean.get("net.retransmits", 0.0)
    sent = f" {units.quantity(again, '/s')} segments were sent again." if again > 0 else ""
    return _listed(strip, read) + _link(read.mean.get("net.used")) + sent


def _link(used: float | None) -> str:
    """Return how full the link was, where its speed is known, and whether it was the limit."""
    if used is None:
        return ""
    limit = ": the link was the limit" if used >= FULL_LINK else ""
    return f" The link was {units.quantity(used, 'share')} full{limit}."


def _pressure(strip: Strip, read: Reading) -> str:
    ranked = sorted(((read.mean[n], label) for n, label in strip.curves if n in read.mean))
    said = [f"{units.quantity(value, 'share')} {label}" for value, label in reversed(ranked)]
    return f"Some task waited {units.listed(said)}."


def _pool(_: Strip, read: Reading) -> str:
    hits, dirty = read.text("innodb.hit_ratio", "share"), read.text("innodb.dirty_share", "share")
    said = f"{hits} of page requests were hits" if "innodb.hit_ratio" in read.mean else ""
    if "innodb.dirty_share" in read.mean:
        said += f"{'; ' if said else ''}{dirty} of the pages were dirty"
    return f"{said}."


_SAID: Mapping[str, Callable[[Strip, Reading], str]] = {
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
    """Return what tells one trial from the others of its treatment."""
    value = trial.metrics.get(response, trial.metrics.get(curves.TAIL))
    unit = "/s" if response in trial.metrics else "s"
    shown = f": {units.quantity(value, unit)}" if value is not None else ""
    return f"trial {trial.id}, block {trial.block + 1}{shown}"
