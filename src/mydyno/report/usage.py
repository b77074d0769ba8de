"""Resource use of each treatment: means over the measured windows."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from mydyno.analyse.result import Curve, Result, TrialView
from mydyno.report import curves, panels, units
from mydyno.report.panels import Panel
from mydyno.report.plot import Style

BUSY = ("cpu.user", "cpu.system", "cpu.irq")
_OPERATIONS = {
    "disk.read_latency": "disk.reads",
    "disk.write_latency": "disk.writes",
    "disk.flush_latency": "disk.flushes",
}
_COLUMNS = (  # heading, unit, what is summed up
    ("CPU busy", "cores", BUSY),
    ("CPU stolen", "cores", ("cpu.steal",)),
    ("Disk reads", "/s", ("disk.reads",)),
    ("Disk writes", "/s", ("disk.writes",)),
    ("Disk flushes", "/s", ("disk.flushes",)),
    ("Read latency", "s", ("disk.read_latency",)),
    ("Write latency", "s", ("disk.write_latency",)),
    ("Flush latency", "s", ("disk.flush_latency",)),
    ("Link used", "share", ("net.used",)),
    ("Buffer pool hits", "share", ("innodb.hit_ratio",)),
    ("Redo", "B/s", ("innodb.redo_rate",)),
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
    named = panels.of_trial(trial, response)
    inside = {name: _inside(curve, trial.window) for name, curve in named.items()}
    found = {}
    for name, samples in inside.items():
        weights = inside.get(_OPERATIONS.get(name, ""), {})
        weighed = [(v, weights.get(t_s, 1.0 if not weights else 0.0)) for t_s, v in samples.items()]
        total = sum(w for _, w in weighed)
        if total > 0:
            found[name] = sum(v * w for v, w in weighed) / total
    own = {panels.WORK: trial.metrics.get(response), curves.TAIL: trial.metrics.get(curves.TAIL)}
    return found | {name: value for name, value in own.items() if value is not None}


def spans(trial: TrialView, response: str) -> dict[str, tuple[float, float, float]]:
    """Return the lowest, the median and the highest sample of each curve in the trial's window."""
    named = panels.of_trial(trial, response)
    inside = {name: _inside(curve, trial.window).values() for name, curve in named.items()}
    return {name: (min(s), median(s), max(s)) for name, s in inside.items() if s}


def of_treatments(result: Result, workload: str) -> dict[str, Means]:
    """Return each treatment's means: of its sampled trials under a workload, each counting once."""
    response = curves.response(result, workload)
    found: dict[str, list[dict[str, float]]] = {}
    for trial in panels.sampled(result):
        if trial.workload == workload:
            found.setdefault(trial.treatment, []).append(means(trial, response))
    return {treatment: _mean(each) for treatment, each in found.items()}


def table(of: Mapping[str, Means], styles: Sequence[Style], work: str) -> Usage:
    """Return what all treatments used of the main resources; what none recorded has no column.

    `work` is the heading of the response.
    """
    ordered = [s for s in styles if s.name in of]
    columns = ((work, "/s", (panels.WORK,)), *_COLUMNS)
    shown = [c for c in columns if any(_sum(of[s.name], c[2]) is not None for s in ordered)]
    base = of.get(styles[0].name, {})
    rows = tuple((s, tuple(_cell(of[s.name], base, c) for c in shown)) for s in ordered)
    return Usage(tuple(heading for heading, _, _ in shown), rows)


def of_panel(panel: Panel, of: Mapping[str, Means], styles: Sequence[Style]) -> Usage:
    """Return the means of one panel's curves for each treatment."""
    ordered = [s for s in styles if any(name in of.get(s.name, {}) for name, _ in panel.curves)]
    base = of.get(styles[0].name, {})
    columns = [(label, panel.unit, (name,)) for name, label in panel.curves]
    shown = [c for c in columns if any(_sum(of[s.name], c[2]) is not None for s in ordered)]
    rows = tuple((s, tuple(_cell(of[s.name], base, c) for c in shown)) for s in ordered)
    return Usage(tuple(units.heading(label) for label, _, _ in shown), rows)


def _cell(of: Means, base: Means, column: tuple[str, str, tuple[str, ...]]) -> UsageCell:
    _, unit, names = column
    value, before = _sum(of, names), _sum(base, names)
    if value is None:
        return UsageCell(units.NOTHING)
    comparable = of is not base and before and value > 0 and unit != "share"
    return UsageCell(
        units.quantity(value, unit), units.times(value / before) if comparable and before else ""
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
