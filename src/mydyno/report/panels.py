"""The resource panels: charts of one trial on one axis of time, and their samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from mydyno.report import curves, units
from mydyno.report.curves import Samples, drawable
from mydyno.stats.result import Curve, Result, TrialView

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
    names = dict.fromkeys(curves.response(result, t.workload) for t in trials)
    title = units.heading(next(iter(names))) if len(names) == 1 else "Response"
    found = [c for t in trials for c in t.curves if c.name in names]
    unit = found[0].unit if found else "/s"
    work = Panel("work", title, unit, ((WORK, title[:1].lower() + title[1:]),))
    tail = Panel("tail", units.heading(curves.TAIL), "s", ((curves.TAIL, "p99"),))
    return [work, tail, *_KNOWN]


def of_trial(trial: TrialView, response: str) -> dict[str, Curve]:
    """Return a trial's curves by name, its response under a name that all workloads share."""
    load = {WORK if c.name == response else c.name: c for c in trial.curves}
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


def _step(found: Sequence[Curve]) -> float:
    gaps = [b - a for c in found for a, b in zip(c.t_s, c.t_s[1:], strict=False) if b > a]
    return max(round(median(gaps), 3), 0.001) if gaps else 1.0


def _sampled(curve: Curve, start_s: float, step_s: float) -> Samples:
    """Return a curve on the grid, counted from its own first sample.

    Two sources read at other parts of the second would each lose samples on one rounded grid.
    """
    first = curve.t_s[0]
    ahead = int((first - start_s) / step_s + 1e-6)
    samples: Samples = [None] * (round((max(curve.t_s) - first) / step_s) + ahead + 1)
    for t_s, value in zip(curve.t_s, curve.values, strict=False):
        if drawable(value, log=False):
            samples[max(round((t_s - first) / step_s), 0) + ahead] = value
    return samples


def thinned(full: PanelSeries, panel: Panel, most: int) -> PanelSeries:
    """Return at most so many points: each bucket's least and greatest sample, in their order.

    Modes of a stack are kept together, at the extremes of their sum.
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
