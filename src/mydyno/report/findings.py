"""One sentence for each figure: its main finding."""

from collections.abc import Sequence

from mydyno.analyse.result import Comparison, Distribution, Row
from mydyno.report import curves, distributions, units, verdicts
from mydyno.report.curves import Chart
from mydyno.report.plot import Style

_FEW = 4  # names in a sentence


def of_forest(rows: Sequence[Row], baseline: str) -> str:
    """Return which intervals exclude ratio 1; those of unfit treatments are not used."""
    fit = [row for row in rows if row.verdict not in verdicts.UNFIT]
    lost = [row.name for row in rows if row.ends.lost and row.verdict in verdicts.UNFIT]
    shown = [(row.name, row.effect) for row in fit if row.effect and row.name != baseline]
    above = [name for name, effect in shown if effect.low > 1]
    below = [name for name, effect in shown if effect.high < 1]
    across = [name for name, effect in shown if effect.low <= 1 <= effect.high]
    sentences = [
        _intervals(above, "entirely above 1"),
        _intervals(below, "entirely below 1"),
        _intervals(across, "including 1: no significant difference"),
        _lost(lost),
    ]
    return " ".join(s for s in sentences if s) or "Nothing could be compared with the baseline."


def of_chart(chart: Chart, compared: Comparison) -> str:
    """Return the middle of the measured windows, for the leader and the baseline."""
    values = [
        f"{units.quantity(value, chart.unit)} with {name}"
        for name in _leading(compared, chart.workload)
        if (value := curves.middle(chart, name, chart.warm[1], chart.end)) is not None
    ]
    if not values:
        return "No trial of the leader or the baseline has this curve."
    warm = " The shaded warm-up is not used." if chart.warm[1] > 0 else ""
    return f"In the measured window, the median is {units.listed(values)}.{warm}"


def of_latency(found: Sequence[tuple[Style, Distribution]], compared: Comparison) -> str:
    """Return the p99 latency of the leader and of the baseline."""
    workload = found[0][1].workload
    named = {style.name: d for style, d in found}
    values = [
        f"{units.quantity(distributions.percentile(named[n], 0.99), 's')} with {n}"
        for n in _leading(compared, workload)
        if n in named
    ]
    return f"99 of 100 operations finished within {units.listed(values)}." if values else ""


def _leading(compared: Comparison, workload: str) -> list[str]:
    """Return the treatment worth naming first and the baseline, or a few if none leads."""
    leader = verdicts.best(compared, workload)
    if leader is None:
        return verdicts.treatments(compared)[:_FEW]
    return list(dict.fromkeys([leader, compared.baseline]))


def _lost(names: Sequence[str]) -> str:
    if not names:
        return ""
    who = units.listed(names) if len(names) <= _FEW else f"{len(names)} treatments"
    return f"{who}: trials failed or stalled, so the other trials are not used."


def _intervals(names: Sequence[str], where: str) -> str:
    if not names:
        return ""
    who = units.listed(names) if len(names) <= _FEW else f"{len(names)} treatments"
    return f"{who}: {'interval' if len(names) == 1 else 'intervals'} {where}."
