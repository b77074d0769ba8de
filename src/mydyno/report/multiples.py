"""Small multiples: one plot per treatment, its median over the blocks and the baseline's."""

from collections.abc import Callable, Sequence
from statistics import median

from mydyno.report import curves, units
from mydyno.report.axis import Axis, clock, linear, logarithmic, pace
from mydyno.report.curves import Chart, Samples
from mydyno.report.plot import Line, Plot, Point, Style, Tick, area, path, ticks

_BUCKETS = 120  # points across one plot: more are not visible at its size
_ROWS = 12  # of the table with the same figures


def multiples(chart: Chart, styles: Sequence[Style]) -> list[Plot]:
    """Return a plot for each treatment with data; the baseline, first of `styles`, is in all."""
    x, y = _axes(chart)
    spreads = {s.name: _coarse(chart, s.name) for s in styles}
    seconds = tuple(Tick(x.at(t), f"{t:g} s") for t in x.ticks)
    base = _line(spreads[styles[0].name][1], chart, x, y)
    shown = []
    for style in styles:
        low, mid, high = (_line(s, chart, x, y) for s in spreads[style.name])
        if not any(mid):
            continue
        lines = [Line("reference", styles[0].name, path(base))] if style != styles[0] else []
        lines.append(Line(f"c{style.colour}", style.name, path(mid)))
        band = Line(f"c{style.colour}", f"{style.name}: lowest to highest block", area(low, high))
        frame = (style.name, seconds, ticks(y, chart.unit))
        shown.append(Plot(*frame, (band,), tuple(lines), x.at(chart.warm[0])))
    return shown


def table(chart: Chart, styles: Sequence[Style]) -> list[list[str]]:
    """Return the charted medians as rows of text: a time, then a value for each treatment."""
    last_s = (chart.length - 1) * chart.step_s
    wide = max(round(pace(last_s, _ROWS) / chart.step_s), 1)
    medians = [curves.spread(curves.of_treatment(chart, s.name), chart.length)[1] for s in styles]
    rows = []
    for first in range(1, chart.length, wide):
        until = min(first + wide, chart.length)
        cells = (_cell(m[first:until], chart.unit) for m in medians)
        rows.append([f"{(until - 1) * chart.step_s:g} s", *cells])
    return rows


def _cell(samples: Samples, unit: str) -> str:
    seen = [s for s in samples if s is not None]
    return units.quantity(median(seen), unit) if seen else units.NOTHING


def _axes(chart: Chart) -> tuple[Axis, Axis]:
    """Return the axes that all plots of a chart share."""
    seen = [s for t in chart.tracks for s in t.samples if curves.drawable(s, log=chart.log)]
    low, high = min(seen, default=1.0), max(seen, default=1.0)
    last = max(chart.length - 1, 1) * chart.step_s
    return clock(last), logarithmic(low, high, 3) if chart.log else linear(0, high, 3)


def _coarse(chart: Chart, treatment: str) -> tuple[Samples, Samples, Samples]:
    """Return a treatment's spread in at most so many buckets; no extreme is lost."""
    low, mid, high = curves.spread(curves.of_treatment(chart, treatment), chart.length)
    wide = max(1, -(-chart.length // _BUCKETS))
    return _bucketed(low, wide, min), _bucketed(mid, wide, median), _bucketed(high, wide, max)


def _bucketed(samples: Samples, wide: int, pick: Callable[[Sequence[float]], float]) -> Samples:
    groups = (samples[i : i + wide] for i in range(0, len(samples), wide))
    present = ([s for s in group if s is not None] for group in groups)
    return [pick(group) if group else None for group in present]


def _line(samples: Samples, chart: Chart, x: Axis, y: Axis) -> list[Point | None]:
    wide = max(1, -(-chart.length // _BUCKETS))
    return [
        (x.at(i * wide * chart.step_s), y.at(s)) if curves.drawable(s, log=chart.log) else None
        for i, s in enumerate(samples)
    ]
