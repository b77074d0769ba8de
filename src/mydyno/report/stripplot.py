"""Strips as drawings for paper and for no script: the trials of one strip on shared axes."""

from collections.abc import Sequence
from itertools import accumulate

from mydyno.analyse.result import TrialView
from mydyno.report.axis import Axis, clock, linear, logarithmic
from mydyno.report.curves import Samples, drawable
from mydyno.report.plot import Line, Plot, Point, Style, Tick, area, path, ticks
from mydyno.report.strips import Strip, Tape, thinned

_STACK = (1, 5, 6, 3, 2)  # colours: what is lost to waiting and theft stands out
_TICKS = 3
_POINTS = 240  # of one curve: a drawing is not zoomed into

Drawn = tuple[TrialView, Tape | None, Style]


def legend(strip: Strip) -> tuple[Style, ...]:
    """Return how each of a strip's curves is drawn; one alone takes its treatment's style."""
    labels = [label for _, label in strip.curves]
    if len(labels) == 1:
        return ()
    if strip.stacked:
        return tuple(Style(label, colour, 0) for label, colour in zip(labels, _STACK, strict=True))
    return tuple(Style(label, i + 1, i) for i, label in enumerate(labels))


def plots(strip: Strip, drawn: Sequence[Drawn]) -> list[Plot | None]:
    """Return each trial's drawing, None where it has no tape; all on the same axes."""
    coarse = [(t, tape and thinned(tape, strip, _POINTS), style) for t, tape, style in drawn]
    tapes = [tape for _, tape, _ in coarse if tape]
    if not tapes:
        return [None for _ in drawn]
    x, y = clock(max(_last(t, tape) for t, tape, _ in coarse if tape)), _upright(strip, tapes)
    return [_plot(strip, each, x, y) for each in coarse]


def _last(trial: TrialView, tape: Tape) -> float:
    return max(tape.start_s + (tape.length - 1) * tape.step_s, trial.window[1], 1.0)


def _upright(strip: Strip, tapes: Sequence[Tape]) -> Axis:
    """Return the y axis; that of a stack reaches to its sum and to the number of cores."""
    every: Samples = []
    for tape in tapes:
        every += tape.totals if strip.stacked else [s for t in tape.tracks for s in t]
        every.append(tape.top)
    seen = [s for s in every if drawable(s, log=strip.log)]
    low, high = min(seen, default=1.0), max(seen, default=1.0)
    return logarithmic(low, high, _TICKS) if strip.log else linear(0, high, _TICKS)


def _plot(strip: Strip, drawn: Drawn, x: Axis, y: Axis) -> Plot | None:
    trial, tape, style = drawn
    if tape is None:
        return None
    styles = legend(strip) or (style,)
    bands, lines = _stack(tape, styles, x, y) if strip.stacked else ((), _lines(tape, styles, x, y))
    if tape.top:
        ends = [(0.0, y.at(tape.top)), (100.0, y.at(tape.top))]
        lines = (*lines, Line("c0 d2 cores", f"{tape.top:.0f} cores", path(ends)))
    start, end = (x.at(t) for t in trial.window)
    seconds = tuple(Tick(x.at(t), f"{t:g} s") for t in x.ticks)
    return Plot(trial.treatment, seconds, ticks(y, strip.unit), bands, lines, start, end or 100.0)


def _lines(tape: Tape, styles: Sequence[Style], x: Axis, y: Axis) -> tuple[Line, ...]:
    pairs = zip(tape.tracks, styles, strict=True)
    return tuple(Line(s.css, s.name, path(_points(tape, t, x, y))) for t, s in pairs if t)


def _stack(
    tape: Tape, styles: Sequence[Style], x: Axis, y: Axis
) -> tuple[tuple[Line, ...], tuple[Line, ...]]:
    floors = [_points(tape, level, x, y) for level in levels(tape)]
    bands = tuple(
        Line(f"{style.css} solid", style.name, area(low, high))
        for style, low, high in zip(styles, floors, floors[1:], strict=False)
    )
    return bands, ()


def levels(tape: Tape) -> list[Samples]:
    """Return the floor of a stack and then each track on top of those before it."""
    known = tape.totals
    columns = []
    for i, total in enumerate(known):
        each = [t[i] if i < len(t) else None for t in tape.tracks]
        heights = accumulate((s or 0.0 for s in each), initial=0.0)
        columns.append(list(heights) if total is not None else [None] * (len(each) + 1))
    return [list(level) for level in zip(*columns, strict=True)]


def _points(tape: Tape, samples: Samples, x: Axis, y: Axis) -> list[Point | None]:
    return [
        (x.at(tape.start_s + i * tape.step_s), y.at(s)) if drawable(s, log=y.log) else None
        for i, s in enumerate(samples)
    ]
