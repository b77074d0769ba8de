"""One sentence for each figure: what a reader should see in it."""

from collections.abc import Sequence

from mydyno.analyse.result import Comparison, Distribution, Row
from mydyno.report import curves, latency, units, verdicts
from mydyno.report.curves import Chart
from mydyno.report.plot import Style

_FEW = 4  # names that a sentence bears


def of_forest(rows: Sequence[Row], baseline: str) -> str:
    """Return which intervals lie clear of the baseline; those of unfit treatments show nothing."""
    fit = [row for row in rows if row.verdict not in verdicts.UNFIT]
    lost = [row.name for row in rows if row.ends.lost and row.verdict in verdicts.UNFIT]
    shown = [(row.name, row.effect) for row in fit if row.effect and row.name != baseline]
    above = [name for name, effect in shown if effect.low > 1]
    below = [name for name, effect in shown if effect.high < 1]
    across = [name for name, effect in shown if effect.low <= 1 <= effect.high]
    said = [
        _intervals(above, "wholly above 1"),
        _intervals(below, "wholly below 1"),
        _intervals(across, "across 1, so no difference is shown"),
        _lost(lost),
    ]
    return " ".join(s for s in said if s) or "Nothing could be compared with the baseline."


def of_chart(chart: Chart, compared: Comparison) -> str:
    """Return the middle of the measured windows, for the leader and the baseline."""
    said = [
        f"{units.quantity(value, chart.unit)} with {name}"
        for name in _leading(compared, chart.workload)
        if (value := curves.middle(chart, name, chart.warm[1], chart.end)) is not None
    ]
    if not said:
        return "No trial of the leader or the baseline has this curve."
    warm = " The shaded warm-up is not compared." if chart.warm[1] > 0 else ""
    return f"In the measured window, the median is {units.listed(said)}.{warm}"


def of_latency(found: Sequence[tuple[Style, Distribution]], compared: Comparison) -> str:
    """Return what 99 of 100 operations stayed within, for the leader and the baseline."""
    workload = found[0][1].workload
    named = {style.name: d for style, d in found}
    said = [
        f"{units.quantity(latency.percentile(named[n], 0.99), 's')} with {n}"
        for n in _leading(compared, workload)
        if n in named
    ]
    return f"99 of 100 operations finished within {units.listed(said)}." if said else ""


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
    return f"{who}: trials failed or stalled, so nothing is concluded from the others."


def _intervals(names: Sequence[str], where: str) -> str:
    if not names:
        return ""
    who = units.listed(names) if len(names) <= _FEW else f"{len(names)} treatments"
    return f"{who}: {'interval' if len(names) == 1 else 'intervals'} {where}."
