"""Panels as static drawings (print, no JavaScript): the trials of one panel on shared axes."""

from collections.abc import Sequence
from itertools import accumulate

from mydyno.analyse.result import TrialView
from mydyno.report.axis import Axis, clock, linear, logarithmic
from mydyno.report.curves import Samples, drawable
from mydyno.report.panels import Panel, PanelSeries, thinned
from mydyno.report.plot import Line, Plot, Point, Style, Tick, area, path, ticks

_STACK = (1, 5, 6, 3, 2)  # colours: I/O wait and steal stand out
_TICKS = 3
_POINTS = 240  # of one curve: a drawing is not zoomed into

Drawn = tuple[TrialView, PanelSeries | None, Style]


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
    coarse = [(t, one and thinned(one, panel, _POINTS), style) for t, one, style in drawn]
    series = [one for _, one, _ in coarse if one]
    if not series:
        return [None for _ in drawn]
    x, y = (
        clock(max(_last(t, one) for t, one, _ in coarse if one)),
        _upright(panel, series),
    )
    return [_plot(panel, each, x, y) for each in coarse]


def _last(trial: TrialView, series: PanelSeries) -> float:
    return max(series.start_s + (series.length - 1) * series.step_s, trial.window[1], 1.0)


def _upright(panel: Panel, series: Sequence[PanelSeries]) -> Axis:
    """Return the y axis; that of a stack reaches to its sum and to the number of cores."""
    every: Samples = []
    for one in series:
        every += one.totals if panel.stacked else [s for t in one.tracks for s in t]
        every.append(one.top)
    seen = [s for s in every if drawable(s, log=panel.log)]
    low, high = min(seen, default=1.0), max(seen, default=1.0)
    return logarithmic(low, high, _TICKS) if panel.log else linear(0, high, _TICKS)


def _plot(panel: Panel, drawn: Drawn, x: Axis, y: Axis) -> Plot | None:
    trial, series, style = drawn
    if series is None:
        return None
    styles = legend(panel) or (style,)
    bands, lines = (
        _stack(series, styles, x, y) if panel.stacked else ((), _lines(series, styles, x, y))
    )
    if series.top:
        ends = [(0.0, y.at(series.top)), (100.0, y.at(series.top))]
        lines = (*lines, Line("c0 d2 cores", f"{series.top:.0f} cores", path(ends)))
    start, end = (x.at(t) for t in trial.window)
    seconds = tuple(Tick(x.at(t), f"{t:g} s") for t in x.ticks)
    return Plot(trial.treatment, seconds, ticks(y, panel.unit), bands, lines, start, end or 100.0)


def _lines(series: PanelSeries, styles: Sequence[Style], x: Axis, y: Axis) -> tuple[Line, ...]:
    pairs = zip(series.tracks, styles, strict=True)
    return tuple(Line(s.css, s.name, path(_points(series, t, x, y))) for t, s in pairs if t)


def _stack(
    series: PanelSeries, styles: Sequence[Style], x: Axis, y: Axis
) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    floors = [_points(series, level, x, y) for level in levels(series)]
    bands = tuple(
        Line(f"{style.css} solid", style.name, area(low, high))
        for style, low, high in zip(styles, floors, floors[1:], strict=False)
    )
    return bands, ()


def levels(series: PanelSeries) -> list[Samples]:
    """Return the floor of a stack and then each track on top of those before it."""
    known = series.totals
    columns = []
    for i, total in enumerate(known):
        each = [t[i] if i < len(t) else None for t in series.tracks]
        heights = accumulate((s or 0.0 for s in each), initial=0.0)
        columns.append(list(heights) if total is not None else [None] * (len(each) + 1))
    return [list(level) for level in zip(*columns, strict=True)]


def _points(series: PanelSeries, samples: Samples, x: Axis, y: Axis) -> list[Point | None]:
    return [
        (x.at(series.start_s + i * series.step_s), y.at(s)) if drawable(s, log=y.log) else None
        for i, s in enumerate(samples)
    ]
