"""The conclusion of a campaign, as findings: who wins, or why nobody does, and how the soak went.

The words for it are in `mydyno.report.words`.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import log, sqrt

from mydyno.model import Figure, Finding, FindingPlace, Outcome, TrialStatus
from mydyno.stats.checks import counts, ending, versus
from mydyno.stats.contrasts import change as change_of
from mydyno.stats.contrasts import ratio
from mydyno.stats.decide import held, unevaluated
from mydyno.stats.result import Comparison, Ends, Row
from mydyno.stats.rule import Guards, Rule, broken_guards

_UNFIT = frozenset({"failed", "unstable"})
_QUARTERS = 4
_FEWEST = 24  # bins: with fewer, quarters are too short
_SURE = 2.8  # standard errors: Student's t for four degrees of freedom
_BATCHES = 3  # of a quarter, whose means are taken for independent


def conclude(comparison: Comparison, rule: Rule) -> list[Finding]:
    """Return who wins, by how much and with which interval, or why nobody does."""
    if comparison.winner:
        return [_winner(comparison, comparison.winner)]
    if comparison.parts and rule.screening:
        return [_screened(comparison)]
    return _no_winner(comparison, rule)


def _screened(comparison: Comparison) -> Finding:
    """Return which factors matter, the strongest first."""
    ordered = sorted(comparison.parts, key=lambda part: -abs(log(part.effect.ratio)))
    significant = [part for part in ordered if not part.effect.low <= 1 <= part.effect.high]
    if not significant:
        return Finding("screened-none", {"settings": len(ordered)})
    figures: dict[str, Figure] = {
        "settings": len(ordered),
        "names": [f"{part.factor} = {part.level}" for part in significant],
        "ratios": [f"{part.effect.ratio:.2f}" for part in significant],
    }
    return Finding("screened", figures)


def _winner(comparison: Comparison, winner: str) -> Finding:
    rows = [r for r in comparison.treatments if r.name == winner and r.verdict == "adopt"]
    effect, row = max(
        ((r.effect, r) for r in rows if r.effect), key=lambda pair: abs(log(pair[0].ratio))
    )
    figures: dict[str, Figure] = {
        "responses": comparison.response.split(", "),
        "baseline": comparison.baseline,
        "workloads": len(comparison.winners),
        "ratio": effect.ratio,
        "low": effect.low,
        "high": effect.high,
        "trials": row.trials,
    }
    guard = row.guards.get("latency_p99_s")
    latency: dict[str, Figure] = {"latency_ratio": guard.ratio} if guard else {}
    return Finding("winner", figures | latency, FindingPlace(winner, row.workload))


def _no_winner(comparison: Comparison, rule: Rule) -> list[Finding]:
    rows = [r for r in comparison.treatments if r.verdict != "baseline"]
    if not rows:
        return [Finding("no-treatment", {"baseline": comparison.baseline})]
    base = [r for r in comparison.treatments if r.verdict == "baseline" and r.ends.lost]
    if gone := next((r for r in base if r.ends.lost == r.ends.trials), None):
        return [Finding("lost-baseline", counts(gone.ends), FindingPlace(gone.name, gone.workload))]
    lost = _lost(comparison, rows)
    if not all(r.effect is None for r in rows if r.verdict not in _UNFIT):
        return [_none_better(comparison, rows, rule), *lost]
    if lost:
        return [Finding("all-lost"), *lost]
    ran_once = max(row.trials for row in rows) == 1
    return [Finding("ran-once" if ran_once else "too-few-trials")]


def _none_better(comparison: Comparison, rows: Sequence[Row], rule: Rule) -> Finding:
    if rejected := [r for r in rows if _gained(r, rule) and _broken_of(r, rule)]:
        one, all_of = (len({r.name for r in some}) for some in (rejected, rows))
        guards = _once(name for r in rejected for name in _broken_of(r, rule))
        return Finding("broke-guards", {"better": one, "treatments": all_of, "guards": guards})
    blocked = [r for r in rows if r.verdict == "inconclusive" and unevaluated(r)]
    if blocked := [r for r in blocked if _gained(r, rule)]:
        guards = _once(str(f.figures["guard"]) for r in blocked for f in unevaluated(r))
        names = _once(r.name for r in blocked)
        return Finding("guards-block", {"names": names, "guards": guards})
    adopted = [r for r in rows if r.verdict == "adopt"]
    if weaker := _once(r.name for r in adopted if r.durability == "weaker"):
        return Finding("only-weaker", {"names": weaker})
    seen = [r.detectable for r in rows if r.detectable is not None]
    figures: dict[str, Figure] = {"baseline": comparison.baseline}
    if not seen:
        return Finding("none-better", figures)
    return Finding("none-better", {**figures, "detectable": max(seen)})


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _lost(comparison: Comparison, rows: Sequence[Row]) -> list[Finding]:
    """Return which treatment lost the largest share of its trials, nothing where none failed."""
    unfit = [r for r in rows if r.ends.lost and r.verdict in _UNFIT]
    if not unfit:
        return []
    worst = max(unfit, key=lambda r: r.ends.lost / r.ends.trials)
    ends = {r.workload: r.ends for r in comparison.treatments if r.verdict == "baseline"}
    baseline = versus(ends.get(worst.workload, Ends()))
    others = {"others": len({r.name for r in unfit} - {worst.name})}
    figures = {**counts(worst.ends), **baseline, **others}
    return [Finding("most-lost", figures, FindingPlace(worst.name, worst.workload))]


def _gained(row: Row, rule: Rule) -> bool:
    """Return whether a treatment is shown to be better than the baseline."""
    ends = (row.effect.low, row.effect.high) if row.effect else (1.0,)
    return min(rule.gain(log(end), row.workload) for end in ends) > 0


def _broken_of(row: Row, rule: Rule) -> Guards:
    """Return the guards for which a treatment was rejected."""
    return broken_guards(held(row, rule)) if row.verdict == "reject" else {}


def soaked(outcomes: Sequence[Outcome], rule: Rule) -> list[Finding]:
    """Return whether the winner's soak held its throughput, nothing without a soak.

    The last quarter is compared with the second; the first is still part of the warm-up.  The
    error of the difference is by batch means (Law and Kelton, 2000, chapter 9.5).
    """
    trial = next((o for o in outcomes if o.trial.soak), None)
    if trial is None:
        return []
    place = FindingPlace(trial.trial.treatment, trial.trial.workload, trial.trial.id)
    if trial.status is TrialStatus.OK:
        return [_soak(trial, rule, place)]
    why = ending(trial)
    return [Finding("soak-failed", {"why": why.code, **why.figures}, place)]


def _soak(trial: Outcome, rule: Rule, place: FindingPlace) -> Finding:
    from mydyno.stats.sequential import gains  # noqa: PLC0415 - numpy and scipy

    response = rule.responses[trial.trial.workload]
    series = next((s for s in trial.series if s.name == response), None)
    if series is None or len(series.values) < _FEWEST:
        return Finding("soak-short", place=place)
    logs = gains(series, rule.lower)
    quarter = len(logs) // _QUARTERS
    early, late = logs[quarter : 2 * quarter], logs[-quarter:]
    change = float(late.mean() - early.mean())
    error = sqrt(sum(_error_squared(part.tolist()) for part in (early, late)))
    low, high = (change_of(change + side * _SURE * error) for side in (-1, 1))
    worse = change < -_SURE * error and ratio(-change) > 1 + rule.margin / 2
    figures: Mapping[str, Figure] = {
        "length_s": series.t_s[-1],
        "change": change_of(change),
        "low": low,
        "high": high,
    }
    return Finding("soak-worse" if worse else "soak-held", figures, place)


def _error_squared(values: Sequence[float]) -> float:
    size = len(values) // _BATCHES
    means = [sum(values[i * size : (i + 1) * size]) / size for i in range(_BATCHES)]
    middle = sum(means) / _BATCHES
    return sum((m - middle) ** 2 for m in means) / (_BATCHES - 1) / _BATCHES
