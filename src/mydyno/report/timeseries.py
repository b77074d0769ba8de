"""Time series: of many trials on one grid of time (charts), and of one trial in panels."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeGuard

from mydyno.report import units
from mydyno.stats.result import Curve, Result, TrialView

Samples = list[float | None]
TAIL = "latency_p99_s"


@dataclass(frozen=True, slots=True)
class TrialCurve:
    """One trial's curve; sample `i` belongs to ``t = i * step_s`` of its chart."""

    treatment: str
    block: int
    samples: Samples


@dataclass(frozen=True, slots=True)
class Chart:
    """One quantity under one workload, all trials overlaid; latencies get a log axis.

    `warm` is where the first and the last warm-up ended, `end` where the last window did.
    """

    workload: str
    metric: str
    unit: str
    step_s: float
    warm: tuple[float, float]
    end: float
    tracks: tuple[TrialCurve, ...]

    @property
    def log(self) -> bool:
        """Return whether it is drawn on a logarithmic axis."""
        return self.unit == "s"

    @property
    def title(self) -> str:
        """Return its heading."""
        return f"{units.heading(self.metric)} over time"

    @property
    def length(self) -> int:
        """Return the number of grid points, that at ``t = 0`` included."""
        return max((len(t.samples) for t in self.tracks), default=0)


def charts(result: Result, workload: str) -> list[Chart]:
    """Return the response over time and then the p99 over time, without those nobody measured."""
    trials = [
        t for t in result.trials if t.workload == workload and t.status == "ok" and not t.soak
    ]
    metrics = dict.fromkeys((response(result, workload), TAIL))
    found = [_chart(workload, metric, trials) for metric in metrics]
    return [chart for chart in found if chart]


def response(result: Result, workload: str) -> str:
    """Return the workload's response: the campaign's that it has, or else its first rate."""
    wanted = [name.strip() for name in result.comparison.response.split(",")]
    trials = [t for t in result.trials if t.workload == workload]
    curves = [curve for trial in trials for curve in trial.curves]
    measured = {c.name for c in curves}.union(*(t.metrics for t in trials))
    rates = [c.name for c in curves if c.unit.endswith("/s")]
    return next((n for n in [*wanted, *rates] if n in measured), wanted[0])


def _chart(workload: str, metric: str, trials: Sequence[TrialView]) -> Chart | None:
    pairs = [(t, c) for t in trials for c in t.curves if c.name == metric and c.t_s]
    if not pairs:
        return None
    step = _step([pairs[0][1]])
    tracks = tuple(TrialCurve(t.treatment, t.block, _gridded(c, 0.0, step)) for t, c in pairs)
    windows = [t.window for t, _ in pairs if t.window[1] > t.window[0]]
    warm = (min((w[0] for w in windows), default=0.0), max((w[0] for w in windows), default=0.0))
    end = max((w[1] for w in windows), default=max(max(c.t_s) for _, c in pairs))
    return Chart(workload, metric, pairs[0][1].unit, step, warm, end, tracks)


def _step(found: Sequence[Curve]) -> float:
    """Return the usual time between two samples, in s, at least a millisecond."""
    gaps = [b - a for c in found for a, b in zip(c.t_s, c.t_s[1:], strict=False) if b > a]
    return max(round(median(gaps), 3), 0.001) if gaps else 1.0


def _gridded(curve: Curve, zero_s: float, step_s: float, ahead: int = 0) -> Samples:
    """Return the finite samples on a grid that has `zero_s` at its point `ahead`.

    Of two samples on one point the later stands.
    """
    samples: Samples = [None] * (round((max(curve.t_s) - zero_s) / step_s) + ahead + 1)
    for t_s, value in zip(curve.t_s, curve.values, strict=False):
        if drawable(value, log=False):
            samples[max(round((t_s - zero_s) / step_s), 0) + ahead] = value
    return samples


def drawable(sample: float | None, *, log: bool) -> TypeGuard[float]:
    """Return whether a sample can be drawn: measured, finite, and above 0 on a log axis."""
    return sample is not None and math.isfinite(sample) and (sample > 0 or not log)


def of_treatment(chart: Chart, treatment: str) -> list[TrialCurve]:
    """Return one treatment's tracks."""
    return [track for track in chart.tracks if track.treatment == treatment]


def spread(tracks: Sequence[TrialCurve], length: int) -> tuple[Samples, Samples, Samples]:
    """Return the lowest, the median and the highest of the tracks at each grid point."""
    columns = [
        [s for t in tracks if i < len(t.samples) and drawable(s := t.samples[i], log=False)]
        for i in range(length)
    ]
    return (
        [min(c) if c else None for c in columns],
        [median(c) if c else None for c in columns],
        [max(c) if c else None for c in columns],
    )


def middle(chart: Chart, treatment: str, start_s: float, end_s: float) -> float | None:
    """Return the median of all a treatment's samples with ``start_s < t <= end_s``, or None."""
    first, last = round(start_s / chart.step_s) + 1, round(end_s / chart.step_s) + 1
    inside = [
        s
        for t in of_treatment(chart, treatment)
        for s in t.samples[first:last]
        if drawable(s, log=False)
    ]
    return median(inside) if inside else None


WORK = "response"  # stands for the workload's own response
CPU = ("cpu.user", "cpu.system", "cpu.irq", "cpu.iowait", "cpu.steal")
IDLE = "cpu.idle"


@dataclass(frozen=True, slots=True)
class Panel:
    """One chart: its curves by name, each with what it is called beside the chart.

    The unit ``share`` is a ratio shown in per cent.
    """

    id: str
    title: str
    unit: str
    curves: tuple[tuple[str, str], ...]
    stacked: bool = False

    @property
    def log(self) -> bool:
        """Return whether it is drawn on a logarithmic axis, as all latencies are."""
        return self.unit == "s"


@dataclass(frozen=True, slots=True)
class PanelSeries:
    """One trial's samples in one panel: sample `i` of every track is at ``start_s + i * step_s``.

    `tracks` holds one list for each of the panel's curves, empty where that was not recorded.
    `top` is the number of cores, where the panel is of processors.
    """

    start_s: float
    step_s: float
    tracks: tuple[Samples, ...]
    top: float | None = None

    @property
    def length(self) -> int:
        """Return the number of samples of the longest track."""
        return max(map(len, self.tracks), default=0)

    @property
    def totals(self) -> Samples:
        """Return the sum of the tracks at each point, None where nothing was recorded."""
        return _totals(self.tracks, self.length)


_KNOWN = (
    Panel(
        "cpu",
        "Processors",
        "cores",
        tuple((name, name.removeprefix("cpu.")) for name in CPU),
        stacked=True,
    ),
    Panel(
        "process",
        "Processor time of server and load",
        "cores",
        (("process.mysqld.cpu", "server"), ("process.load.cpu", "load")),
    ),
    Panel(
        "operations",
        "Disk operations",
        "/s",
        (("disk.reads", "reads"), ("disk.writes", "writes"), ("disk.flushes", "flushes")),
    ),
    Panel(
        "bytes",
        "Disk throughput",
        "B/s",
        (("disk.read_bytes", "read"), ("disk.write_bytes", "written")),
    ),
    Panel(
        "latency",
        "Disk latency",
        "s",
        (
            ("disk.read_latency", "read"),
            ("disk.write_latency", "write"),
            ("disk.flush_latency", "flush"),
        ),
    ),
    Panel("queue", "Disk queue", "", (("disk.queue", "in flight"),)),
    Panel("network", "Network", "B/s", (("net.rx_bytes", "in"), ("net.tx_bytes", "out"))),
    Panel(
        "pressure",
        "Time with some task waiting",
        "share",
        (("psi.cpu", "for a processor"), ("psi.io", "for I/O"), ("psi.memory", "for memory")),
    ),
    Panel(
        "pool",
        "InnoDB buffer pool",
        "share",
        (("innodb.hit_ratio", "hits"), ("innodb.dirty_share", "dirty")),
    ),
    Panel(
        "pages",
        "InnoDB pages",
        "/s",
        (("innodb.reads", "read"), ("innodb.writes", "written")),
    ),
    Panel("redo", "InnoDB redo", "B/s", (("innodb.redo_rate", "written"),)),
    Panel("age", "InnoDB checkpoint age", "B", (("innodb.checkpoint_age", "age"),)),
    Panel("locks", "InnoDB row lock waits", "/s", (("innodb.row_lock_waits", "waits"),)),
    Panel("threads", "Threads running in the server", "", (("threads_running", "threads"),)),
    Panel("dirty", "Dirty pages of the page cache", "B", (("memory.dirty", "dirty"),)),
)


def sampled(result: Result) -> list[TrialView]:
    """Return the good trials that were sampled."""
    return [t for t in result.trials if t.status == "ok" and t.gauges and not t.soak]


def panels(result: Result) -> list[Panel]:
    """Return all panels, the response and its p99 first."""
    trials = sampled(result)
    names = dict.fromkeys(response(result, t.workload) for t in trials)
    title = units.heading(next(iter(names))) if len(names) == 1 else "Response"
    found = [c for t in trials for c in t.curves if c.name in names]
    unit = found[0].unit if found else "/s"
    work = Panel("work", title, unit, ((WORK, title[:1].lower() + title[1:]),))
    tail = Panel("tail", units.heading(TAIL), "s", ((TAIL, "p99"),))
    return [work, tail, *_KNOWN]


def of_trial(trial: TrialView, work: str) -> dict[str, Curve]:
    """Return a trial's curves by name, its response under a name that all workloads share."""
    load = {WORK if c.name == work else c.name: c for c in trial.curves}
    return load | {c.name: c for c in trial.gauges}


def series(panel: Panel, named: Mapping[str, Curve], most: int) -> PanelSeries | None:
    """Return a trial's samples for a panel, at most `most` points of each curve, or None."""
    found = [named.get(name) for name, _ in panel.curves]
    full = [c for c in found if c and any(drawable(v, log=panel.log) for v in c.values)]
    if not full:
        return None
    step, start = _step(full), min(c.t_s[0] for c in full)
    tracks = [_sampled(c, start, step) if c in full and c else [] for c in found]
    top = cores(named) if panel.id == "cpu" else None
    return thinned(PanelSeries(start, step, tuple(tracks), top), panel, most)


def cores(named: Mapping[str, Curve]) -> float | None:
    """Return the number of processors: the median of the sum of all modes, rounded."""
    if IDLE not in named:
        return None
    spent: dict[float, float] = {}
    for curve in (named[name] for name in (*CPU, IDLE) if name in named):
        for t_s, value in zip(curve.t_s, curve.values, strict=False):
            spent[t_s] = spent.get(t_s, 0.0) + value
    sums = [s for s in spent.values() if drawable(s, log=True)]
    return float(max(round(median(sums)), 1)) if sums else None


def _totals(tracks: Sequence[Samples], length: int) -> Samples:
    """Return the sum of the tracks at each point, None where nothing was recorded."""
    columns = ([t[i] for t in tracks if i < len(t)] for i in range(length))
    present = ([s for s in column if drawable(s, log=False)] for column in columns)
    return [sum(column) if column else None for column in present]


def _sampled(curve: Curve, start_s: float, step_s: float) -> Samples:
    """Return a curve on the grid, counted from its own first sample.

    Two sources read at other parts of the second would each lose samples on one rounded grid.
    """
    first = curve.t_s[0]
    return _gridded(curve, first, step_s, int((first - start_s) / step_s + 1e-6))


def thinned(full: PanelSeries, panel: Panel, most: int) -> PanelSeries:
    """Return at most so many points: each bucket's least and greatest sample, in their order.

    Modes of a stack stay together, at the extremes of their sum.
    """
    wide = -(-full.length * 2 // most)
    if wide <= 2:  # noqa: PLR2004 - two samples a bucket are all there is
        return full
    picked = _extremes(full.totals, wide) if panel.stacked else []
    tracks = [
        [t[i] if i is not None and i < len(t) else None for i in picked or _extremes(t, wide)]
        for t in full.tracks
    ]
    return PanelSeries(full.start_s, full.step_s * wide / 2, tuple(tracks), full.top)


def _extremes(samples: Samples, wide: int) -> list[int | None]:
    """Return where each bucket's least and greatest sample stand; None where it has none."""
    found: list[int | None] = []
    for first in range(0, len(samples), wide):
        inside = range(first, min(first + wide, len(samples)))
        ranked = sorted((s, i) for i in inside if (s := samples[i]) is not None)
        ends = sorted((ranked[0][1], ranked[-1][1])) if ranked else (None, None)
        found += ends
    return found
