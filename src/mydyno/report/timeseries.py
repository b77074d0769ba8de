"""Time series and their drawings: of many trials on one grid of time, of one trial in panels."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from typing import TypeGuard

from mydyno.report import units
from mydyno.report.charts import (
    Axis,
    AxisTick,
    Line,
    Plot,
    Point,
    Style,
    Table,
    area,
    clock,
    linear,
    logarithmic,
    pace,
    path,
    ticks,
)
from mydyno.stats.result import Curve, Result, TrialView

Samples = list[float | None]
TAIL = "latency_p99_s"


_TWO = 2  # samples: one is no course over time


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
    """Return the response over time and then the p99 over time.

    Without those that nobody measured, or only once in each trial.
    """
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
    if all(len(c.t_s) < _TWO for _, c in pairs):
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


def of_treatment(chart: Chart, treatment: str) -> list[Samples]:
    """Return the samples of one treatment's trials."""
    return [track.samples for track in chart.tracks if track.treatment == treatment]


def spread(chart: Chart, treatment: str) -> tuple[Samples, Samples, Samples]:
    """Return the lowest, the median and the highest of a treatment's samples at each point."""
    tracks = of_treatment(chart, treatment)
    columns = [
        [s for t in tracks if i < len(t) and drawable(s := t[i], log=False)]
        for i in range(chart.length)
    ]
    return _picked(columns, min), _picked(columns, median), _picked(columns, max)


def _picked(
    columns: Sequence[Sequence[float]], pick: Callable[[Sequence[float]], float]
) -> Samples:
    """Return one value for each column that has any."""
    return [pick(column) if column else None for column in columns]


def middle(chart: Chart, treatment: str) -> float | None:
    """Return the median of all a treatment's samples in the measured window, or None."""
    first, last = (round(t_s / chart.step_s) + 1 for t_s in (chart.warm[1], chart.end))
    tracks = of_treatment(chart, treatment)
    inside = [s for t in tracks for s in t[first:last] if drawable(s, log=False)]
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
        columns = ([t[i] for t in self.tracks if i < len(t)] for i in range(self.length))
        return _picked([[s for s in c if drawable(s, log=False)] for c in columns], sum)


MACHINE = (
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
    return [work, Panel("tail", units.heading(TAIL), "s", ((TAIL, "p99"),)), *MACHINE]


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


def _sampled(curve: Curve, start_s: float, step_s: float) -> Samples:
    """Return a curve on the grid, counted from its own first sample.

    Two sources read at other parts of the second would each lose samples on one rounded grid.
    """
    first = curve.t_s[0]
    return _gridded(curve, first, step_s, int((first - start_s) / step_s + 1e-6))


def thinned(full: PanelSeries, panel: Panel, most: int) -> PanelSeries:
    """Return at most so many points: each bucket's least and greatest sample, in their order.

    All modes of a stack are thinned at the same points, the extremes of their sum.
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


_STACK = (1, 5, 6, 3, 2)  # colours: I/O wait and steal stand out
_TICKS = 3
_CURVE_POINTS = 240  # of one curve: a drawing is not zoomed into
_BUCKETS = 120  # points across one of many small plots
_ROWS = 12  # of the table with the same figures

Drawn = tuple[TrialView, PanelSeries | None, Style]


def _upright(samples: Samples, *, log: bool) -> Axis:
    """Return the y axis of a series over time: from 0 to the greatest sample, or logarithmic."""
    seen = [s for s in samples if drawable(s, log=log)]
    low, high = min(seen, default=1.0), max(seen, default=1.0)
    # a drawing is not tall: where it spans more decades, only these are labelled
    return logarithmic(low, high, _TICKS, dense=3) if log else linear(0, high, _TICKS)


def _over_time(
    samples: Samples, start_s: float, step_s: float, x: Axis, y: Axis
) -> list[Point | None]:
    """Return where the samples stand, the first of them at `start_s`; gaps are None."""
    return [
        (x.at(start_s + i * step_s), y.at(s)) if drawable(s, log=y.log) else None
        for i, s in enumerate(samples)
    ]


def _seconds(x: Axis) -> tuple[AxisTick, ...]:
    """Return the ticks of an axis of time; the last one has the unit."""
    return tuple(AxisTick(x.at(t), f"{t:g}{' s' * (t == x.ticks[-1])}") for t in x.ticks)


def legend(panel: Panel) -> tuple[Style, ...]:
    """Return how each of a panel's curves is drawn; one alone takes its treatment's style."""
    labels = [label for _, label in panel.curves]
    if len(labels) == 1:
        return ()
    if panel.stacked:
        return tuple(Style(label, colour, 0) for label, colour in zip(labels, _STACK, strict=True))
    return tuple(Style(label, i + 1, i) for i, label in enumerate(labels))


def plots(panel: Panel, drawn: Sequence[Drawn]) -> list[Plot | None]:
    """Return each trial's drawing, None where it has no series; all on the same axes."""
    coarse = [(t, one and thinned(one, panel, _CURVE_POINTS), style) for t, one, style in drawn]
    last_s, seen = 1.0, Samples()
    for trial, series, _ in coarse:
        if series:
            ends_s = series.start_s + (series.length - 1) * series.step_s
            last_s = max(last_s, ends_s, trial.window[1])
            seen += series.totals if panel.stacked else [s for t in series.tracks for s in t]
            seen.append(series.top)
    x, y = clock(last_s), _upright(seen, log=panel.log)
    return [_plot(panel, each, x, y) for each in coarse]


def _plot(panel: Panel, drawn: Drawn, x: Axis, y: Axis) -> Plot | None:
    trial, series, style = drawn
    if series is None:
        return None
    names = legend(panel) or (style,)
    tracks = levels(series) if panel.stacked else series.tracks
    drawings = [_over_time(t, series.start_s, series.step_s, x, y) for t in tracks]
    bands: list[Line] = []
    lines: list[Line] = []
    if panel.stacked:
        for name, low, high in zip(names, drawings, drawings[1:], strict=False):
            bands.append(Line(f"{name.css} solid", name.name, area(low, high)))
    else:
        for name, points in zip(names, drawings, strict=True):
            if points:
                lines.append(Line(name.css, name.name, path(points)))
    if series.top:
        ends = [(0.0, y.at(series.top)), (100.0, y.at(series.top))]
        lines.append(Line("c0 d2 cores", f"{series.top:.0f} cores", path(ends)))
    start, end = (x.at(t) for t in trial.window)
    axes = (_seconds(x), ticks(y, panel.unit))
    return Plot(trial.treatment, *axes, tuple(bands), tuple(lines), start, end or 100.0)


def levels(series: PanelSeries) -> list[Samples]:
    """Return the floor of a stack and then each track on top of those before it."""
    columns = []
    for i, total in enumerate(series.totals):
        each = [t[i] if i < len(t) else None for t in series.tracks]
        heights = accumulate((s or 0.0 for s in each), initial=0.0)
        columns.append(list(heights) if total is not None else [None] * (len(each) + 1))
    return [list(level) for level in zip(*columns, strict=True)]


def multiples(chart: Chart, styles: Sequence[Style], baseline: str) -> list[Plot]:
    """Return a plot for each treatment with data; the baseline, if it is one, is in all.

    Samples are put into buckets, of which the extremes are shown.
    """
    wide = -(-chart.length // _BUCKETS) or 1
    x = clock(max(chart.length - 1, 1) * chart.step_s)
    y = _upright([s for t in chart.tracks for s in t.samples], log=chart.log)
    curves = {}
    for style in styles:
        low, mid, high = spread(chart, style.name)
        coarse = (
            _bucketed(low, wide, min),
            _bucketed(mid, wide, median),
            _bucketed(high, wide, max),
        )
        curves[style] = [_over_time(s, 0.0, wide * chart.step_s, x, y) for s in coarse]
    base = [Line("reference", s.name, path(c[1])) for s, c in curves.items() if s.name == baseline]
    shown = []
    for style, (low_curve, curve, high_curve) in curves.items():
        if not any(curve):
            continue
        css, extremes = f"c{style.colour}", f"{style.name}: lowest to highest block"
        band = Line(css, extremes, area(low_curve, high_curve))
        lines = (*(base if style.name != baseline else ()), Line(css, style.name, path(curve)))
        axes = (_seconds(x), ticks(y, chart.unit))
        shown.append(Plot(style.name, *axes, (band,), lines, x.at(chart.warm[0])))
    return shown


def multiples_table(chart: Chart, styles: Sequence[Style]) -> Table:
    """Return the charted medians as text: a time, then a value for each treatment with data."""
    measured = [s.name for s in styles if of_treatment(chart, s.name)]
    last_s = (chart.length - 1) * chart.step_s
    wide = max(round(pace(last_s, _ROWS) / chart.step_s), 1)
    columns = [_bucketed(spread(chart, name)[1][1:], wide, median) for name in measured]
    until = [min(first + wide, chart.length) for first in range(1, chart.length, wide)]
    rows = [
        (f"{(end - 1) * chart.step_s:g} s", *(_cell(c[i], chart.unit) for c in columns))
        for i, end in enumerate(until)
    ]
    return Table(("Until", *measured), rows)


def _cell(sample: float | None, unit: str) -> str:
    return units.NOTHING if sample is None else units.quantity(sample, unit)


def _bucketed(samples: Samples, wide: int, pick: Callable[[Sequence[float]], float]) -> Samples:
    groups = (samples[i : i + wide] for i in range(0, len(samples), wide))
    return _picked([[s for s in group if s is not None] for group in groups], pick)
