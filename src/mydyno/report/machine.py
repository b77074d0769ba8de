"""What a machine did, from a sampler's file alone: as text, and as one HTML page."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
from markupsafe import Markup

from mydyno.report import timeseries, units
from mydyno.report.charts import Plot, Style
from mydyno.report.html import environment, policy, text
from mydyno.report.resources import of_trial, sentence
from mydyno.stats.result import Curve, TrialView

_POINTS = 480  # of one curve
_SHEETS = ("template/report.css", "template/narrow.css")
_NAME = 30  # columns of a panel's name in the text
_DEVICE = (
    ("reads", "/s"), ("writes", "/s"), ("flushes", "/s"), ("read_bytes", "B/s"),
    ("write_bytes", "B/s"), ("read_latency", "s"), ("write_latency", "s"), ("queue", ""),
    ("rx_bytes", "B/s"), ("tx_bytes", "B/s"),
)  # fmt: skip


class MachineSample(msgspec.Struct, frozen=True):
    """What a sampler's file holds: whose it is, how long, and means over all of it, in base units.

    `ended` is why the sampler ended, empty where it was killed; `missed` counts lost ticks.
    `disks` and `interfaces` are those that did something, the busiest first; `means` are of the
    machine, and of the busiest of each.
    """

    file: str
    host: str
    began: str
    duration_s: float
    interval_s: float
    ticks: int
    missed: int
    ended: str
    processors: int
    version: str
    means: dict[str, float]
    disks: dict[str, dict[str, float]]
    interfaces: dict[str, dict[str, float]]
    notes: list[str] = []


@dataclass(frozen=True, slots=True)
class Drawing:
    """One panel: what it shows in a sentence, its legend and its drawing."""

    panel: timeseries.Panel
    sentence: str
    legend: Sequence[Style]
    plot: Plot | None


def means(curves: Sequence[Curve]) -> dict[str, float]:
    """Return the mean of each series; latencies are weighted by their operations."""
    return dict(of_trial(_view(curves), "").mean)


def _view(curves: Sequence[Curve]) -> TrialView:
    """Return the series as those of one trial, whose window is all of it."""
    last_s = max((c.t_s[-1] for c in curves if c.t_s), default=0.0)
    return TrialView(0, "machine", "", 0, "ok", "", (0.0, last_s), {}, [], [*curves])


def drawings(curves: Sequence[Curve]) -> list[Drawing]:
    """Return the panels that have data."""
    view = _view(curves)
    use, named, style = of_trial(view, ""), timeseries.of_trial(view, ""), Style("", 1, 0)
    found = []
    for panel in timeseries.MACHINE:
        if series := timeseries.series(panel, named, _POINTS):
            (plot,) = timeseries.plots(panel, [(view, series, style)])
            found.append(Drawing(panel, sentence(panel, use), timeseries.legend(panel), plot))
    return found


def headline(machine: MachineSample) -> str:
    """Return whose sample it is, from when, and how long, in a sentence."""
    span = units.duration(machine.duration_s)
    ticks = units.counted(machine.ticks, "tick")
    missed = f", {machine.missed} missed" if machine.missed else ""
    end = "" if machine.ended else "; the sampler was killed"
    return f"{machine.host or 'A host'}: {span} from {machine.began}, {ticks}{missed}{end}"


def devices(machine: MachineSample) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
    """Return a table of the disks and one of the interfaces: heading and rows, all text."""
    found = []
    for heading, of in (("Disk", machine.disks), ("Interface", machine.interfaces)):
        shown = [(n, unit) for n, unit in _DEVICE if any(n in each for each in of.values())]
        head = (heading, *(units.heading(name) for name, _ in shown))
        rows = [(name, *(_cell(each, *one) for one in shown)) for name, each in of.items()]
        found += [(head, rows)] if rows else []
    return found


def _cell(of: Mapping[str, float], name: str, unit: str) -> str:
    return units.quantity(of[name], unit) if name in of else units.NOTHING


def render_machine_text(machine: MachineSample, curves: Sequence[Curve], width: int) -> str:
    """Return the figures as text, a line for each panel that has data."""
    lines = [f"{units.legible(headline(machine))}"]
    for one in drawings(curves):
        body = f"  {one.panel.title:<{_NAME}} {units.legible(one.sentence)}"
        lines.append(textwrap.fill(body, max(width, 60), subsequent_indent=" " * (_NAME + 3)))
    lines += [f"  ! {units.legible(note)}" for note in machine.notes]
    return "\n".join(lines) + "\n"


def render_machine(machine: MachineSample, curves: Sequence[Curve]) -> str:
    """Return the page; it needs no network and no script, and every text in it is escaped."""
    style = "".join(text(name) for name in _SHEETS)
    return (
        environment()
        .get_template("machine.html")
        .render(
            machine=machine,
            headline=headline(machine),
            drawings=drawings(curves),
            devices=devices(machine),
            policy=policy(style, ()),
            style=Markup(style),  # noqa: S704 - our own files
        )
        .encode("utf-8", "replace")
        .decode()
    )
