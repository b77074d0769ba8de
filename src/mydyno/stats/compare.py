"""The verdicts of a campaign: each treatment against the baseline, and the winner."""

from collections.abc import Callable, Mapping, Sequence
from math import exp, log, sqrt

from mydyno.model import Outcome, TrialStatus
from mydyno.stats.contrasts import Cell, Effect, contrasts, ratio
from mydyno.stats.contrasts import change as change_of
from mydyno.stats.decide import Evidence, Guarded, Pair, by_effect, decide, guarded, is_open, winner
from mydyno.stats.estimates import Estimates, ended, ends_of, log_of, plain, unit_of, zeros
from mydyno.stats.phrases import (
    baseline_lost_trials,
    blocking_guards,
    failures,
    lost_trials,
    no_ratio,
    rejecting_guards,
    sentence,
    unproven_warnings,
    waived_guards,
)
from mydyno.stats.result import Comparison, Estimate, Ratio, Row
from mydyno.stats.rule import CONFIDENCE, Rule, broken_guards, detectable
from mydyno.stats.validity import load_limit, mark_invalid

_QUARTERS = 4
_FEWEST = 24  # bins: with fewer, quarters are too short
_SURE = 2.8  # standard errors: Student's t for four degrees of freedom
_BATCHES = 3  # of a quarter, whose means are taken for independent


def soaked(outcomes: Sequence[Outcome], rule: Rule) -> str:
    """Return in a sentence whether the winner's soak held its throughput, ``""`` without one.

    The last quarter is compared with the second; the first is still part of the warm-up.  The
    error of the difference is by batch means (Law and Kelton, 2000, chapter 9.5).
    """
    trial = next((o for o in outcomes if o.trial.soak), None)
    if trial is None:
        return ""
    name = trial.trial.treatment
    if trial.status is not TrialStatus.OK:
        return f"The soak of {name} failed: {trial.error}."
    return _soak_sentence(trial, rule)


def _soak_sentence(trial: Outcome, rule: Rule) -> str:
    from mydyno.stats.sequential import gains  # noqa: PLC0415 - numpy and scipy

    response = rule.responses[trial.trial.workload]
    name = trial.trial.treatment
    series = next((s for s in trial.series if s.name == response), None)
    if series is None or len(series.values) < _FEWEST:
        return f"The soak of {name} was too short to show whether it holds its throughput."
    logs = gains(series, rule.lower)
    quarter = len(logs) // _QUARTERS
    early, late = logs[quarter : 2 * quarter], logs[-quarter:]
    change = float(late.mean() - early.mean())
    error = sqrt(sum(_error_squared(part.tolist()) for part in (early, late)))
    minutes = series.t_s[-1] / 60
    low, high = (change_of(change + side * _SURE * error) * 100 for side in (-1, 1))
    span = f"{change_of(change) * 100:+.1f} % ({low:+.1f} to {high:+.1f})"
    if change < -_SURE * error and ratio(-change) > 1 + rule.margin / 2:
        return (
            f"Over a soak of {minutes:.0f} minutes {name} got worse: its last quarter is {span} "
            "from its second. Possible causes are slower than a trial: purge, flushing, "
            "fragmentation, heat or burst credits."
        )
    return (
        f"{name} held over a soak of {minutes:.0f} minutes: its last quarter is {span} from its "
        "second."
    )


def _error_squared(values: Sequence[float]) -> float:
    size = len(values) // _BATCHES
    means = [sum(values[i * size : (i + 1) * size]) / size for i in range(_BATCHES)]
    middle = sum(means) / _BATCHES
    return sum((m - middle) ** 2 for m in means) / (_BATCHES - 1) / _BATCHES


def measure(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> Estimates:
    """Return effects within blocks, simultaneous over all treatments for the response."""
    mine = [o for o in outcomes if o.trial.workload == workload]
    logs = _logs(mine, rule.responses[workload])
    values: dict[str, list[float]] = {}
    for (name, _), value in logs.items():
        values.setdefault(name, []).append(value)
    return Estimates(
        effects=contrasts(logs, rule.baseline, confidence=CONFIDENCE, simultaneous=True),
        guards={
            name: contrasts(
                _logs(mine, name), rule.baseline, confidence=CONFIDENCE, simultaneous=False
            )
            for name in rule.guards_of(workload)
        },
        values=values,
        spreads=_ratios(logs, rule.baseline),
    )


def _logs(outcomes: Sequence[Outcome], metric: str) -> dict[Cell, float]:
    """Return the log of a metric by treatment and block; trials without it are left out."""
    found = {(o.trial.treatment, o.trial.block): log_of(o, metric) for o in outcomes}
    return {cell: value for cell, value in found.items() if value is not None}


def _ratios(logs: Mapping[Cell, float], baseline: str) -> dict[str, list[float]]:
    """Return each treatment's log ratios to the baseline of the same block."""
    found: dict[str, list[float]] = {}
    for (name, block), value in logs.items():
        if name != baseline and (baseline, block) in logs:
            found.setdefault(name, []).append(value - logs[(baseline, block)])
    return found


_CARRIES = (
    "the previous treatment carries over into the measured segments, so there is no verdict; "
    'compare with restarts: design.kind = "race"'
)
Cells = Callable[[Sequence[Outcome]], set[tuple[str, str]]]


def compare(
    outcomes: Sequence[Outcome],
    rule: Rule,
    treatments: Sequence[str],
    cells: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Return the verdict on each of `treatments` under each workload of `rule`.

    `cells` holds each treatment's factor levels, if there are factors: main effects and
    interactions are then part of the result.
    """
    spent_s = sum(max(o.machine_time_s, 0.0) for o in outcomes)
    outcomes = ended(outcomes, rule.responses, rule.lower)
    soak = soaked(outcomes, rule)
    outcomes = mark_invalid([o for o in outcomes if not o.trial.soak], rule)
    found = rows(outcomes, rule, treatments)
    winners = {
        workload: winner([r for r in found if r.workload == workload], rule)
        for workload in rule.responses
    }
    responses = list(dict.fromkeys(rule.responses.values()))
    comparison = Comparison(
        campaign=rule.name,
        response=", ".join(responses),
        baseline=rule.baseline,
        machine_time_s=spent_s,
        winner=winner(found, rule),
        winners=winners,
        treatments=found,
        sentence="",
        warnings=_warnings(outcomes, rule),
        soak=soak,
        directions={workload: rule.direction(workload) for workload in rule.responses},
    )
    return _with_sentence(_with_parts(comparison, outcomes, rule, cells or {}), rule)


def _with_parts(
    comparison: Comparison,
    outcomes: Sequence[Outcome],
    rule: Rule,
    cells: Mapping[str, Mapping[str, str]],
) -> Comparison:
    if not cells:
        return comparison
    from msgspec import structs  # noqa: PLC0415

    from mydyno.stats.attribution import attribute, few  # noqa: PLC0415 - numpy and scipy

    attributed = [attribute(outcomes, rule, workload, cells) for workload in rule.responses]
    parts = [part for parts, _ in attributed for part in parts]
    best = comparison.winner
    return structs.replace(
        comparison,
        parts=parts,
        together=[pair for _, pairs in attributed for pair in pairs],
        share=few(parts, cells.get(best, {}), best, rule) if best else "",
    )


def undecided(rule: Rule, treatments: Sequence[str]) -> Cells:
    """Return a function that gives the pairs of workload and treatment that need more trials."""

    def cells(outcomes: Sequence[Outcome]) -> set[tuple[str, str]]:
        found = rows(mark_invalid(outcomes, rule), rule, treatments)
        some = [row for row in found if is_open(row, rule)]
        return {(row.workload, row.name) for row in some + _rivals(found, rule)}

    return cells


def _rivals(found: Sequence[Row], rule: Rule) -> list[Row]:
    """Return the adopted rows that may be the best, where the design looks for the best one."""
    if not rule.choosing:
        return []
    rivals: list[Row] = []
    for workload in rule.responses:
        gains = {
            row.name: sorted(
                rule.gain(log(end), workload) for end in (row.effect.low, row.effect.high)
            )
            for row in found
            if row.workload == workload and row.verdict == "adopt" and row.effect
        }
        best = max((low for low, _ in gains.values()), default=0.0)
        may = {name for name, (_, high) in gains.items() if high >= best}
        if len(may) > 1:
            rivals += [row for row in found if row.workload == workload and row.name in may]
    return rivals


def rows(outcomes: Sequence[Outcome], rule: Rule, treatments: Sequence[str]) -> list[Row]:
    """Return one row for each workload and treatment."""
    found: list[Row] = []
    if rule.screening:
        treatments = [name for name in treatments if name != rule.baseline]
    for workload in rule.responses:
        measured = _measure(outcomes, rule, workload)
        trials: dict[str, list[Outcome]] = {}
        for o in outcomes:
            if o.trial.workload == workload:
                trials.setdefault(o.trial.treatment, []).append(o)
        found += [_row((name, workload), rule, measured, trials) for name in treatments]
    return found


def _measure(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> Estimates:
    if rule.sequential or rule.warming:
        from mydyno.stats import sequential  # noqa: PLC0415 - numpy and scipy: half a second

        return sequential.measure(outcomes, rule, workload)
    return measure(outcomes, rule, workload)


def _with_sentence(comparison: Comparison, rule: Rule) -> Comparison:
    from msgspec import structs  # noqa: PLC0415 - one call at the very end

    return structs.replace(comparison, sentence=sentence(comparison, rule))


def _row(
    cell: tuple[str, str], rule: Rule, measured: Estimates, trials: Mapping[str, Sequence[Outcome]]
) -> Row:
    treatment, workload = cell
    pair = Pair(treatment, workload, trials.get(treatment, []), trials.get(rule.baseline, []))
    effect = measured.effects.get(treatment)
    guards = guarded(pair, rule, measured)
    own, baseline = ends_of(pair.own), ends_of(pair.baseline)
    nothing = zeros([*pair.own, *pair.baseline], rule.responses[workload])
    evidence = Evidence(treatment, workload, effect, guards, own, baseline, nothing)
    word = decide(evidence, rule, measured)
    if word == "failed":
        effect, guards = (
            None,
            Guarded({}, {}, {}, {}),
        )  # the trials that were measured are too few for an effect
    proving = any(o.trial.block >= rule.proving_from for o in pair.own) and _blocks(trials) > 1
    values = measured.values.get(treatment, [])
    return Row(
        name=treatment,
        workload=workload,
        verdict=word,
        durability=rule.class_of(treatment),
        trials=len(values),
        value=_estimate(values, rule.responses[workload]),
        effect=_ratio(effect) if effect else None,
        guards=dict(guards.ratios),
        warnings=[*_failures(pair.own), *_remarks(evidence, word, rule, measured, proving=proving)],
        detectable=detectable(effect) if effect else None,
        plain=plain(pair.own),
        unheld=list(guards.waived),
        ends=own,
        unevaluated=dict(guards.unevaluated) if effect else {},
    )


def _remarks(
    evidence: Evidence, word: str, rule: Rule, measured: Estimates, *, proving: bool
) -> list[str]:
    """Return the warnings about a verdict, except those about single failed trials."""
    if evidence.treatment == rule.baseline:
        return baseline_lost_trials(evidence.own) if evidence.own.lost else []
    found = failures(word, evidence.own, evidence.baseline) if evidence.own.lost else []
    if word == "failed":
        return found
    found += waived_guards(evidence.guards.waived)
    if evidence.zeros:
        found += no_ratio(rule.responses[evidence.workload], evidence.zeros)
    if evidence.effect is None and word == "inconclusive" and proving:
        found.append(
            "fewer than 2 blocks have it and the baseline, so there is no verdict; run more blocks"
        )
    if measured.carries:
        found.append(_CARRIES)
    return found + (_of_guards(evidence, evidence.effect, word, rule) if evidence.effect else [])


def _of_guards(evidence: Evidence, effect: Effect, word: str, rule: Rule) -> list[str]:
    """Return the messages of the guards of a treatment that has an effect."""
    guards = evidence.guards
    found = unproven_warnings(guards.held) if word == "adopt" else []
    if word == "reject" and by_effect(effect, rule, evidence.workload, {}) != "reject":
        found += rejecting_guards(broken_guards(guards.held))
    by_itself = by_effect(effect, rule, evidence.workload, guards.held)
    return found + (blocking_guards(guards.unevaluated) if by_itself == "adopt" else [])


def _blocks(trials: Mapping[str, Sequence[Outcome]]) -> int:
    return len({o.trial.block for mine in trials.values() for o in mine})


def _failures(trials: Sequence[Outcome]) -> list[str]:
    bad = [o for o in trials if o.status is not TrialStatus.OK]
    return [f"trial {o.trial.id} {o.status.value}: {o.error}" for o in bad]


def _ratio(effect: Effect) -> Ratio:
    return Ratio(*effect.interval, confidence=CONFIDENCE)


def _estimate(logs: Sequence[float], response: str) -> Estimate | None:
    if not logs:
        return None
    return Estimate(exp(sum(logs) / len(logs)), unit_of(response))


def _warnings(outcomes: Sequence[Outcome], rule: Rule) -> list[str]:
    warnings: list[str] = []
    if rule.screening:
        return lost_trials(ends_of(outcomes))
    if not any(o.trial.treatment == rule.baseline for o in outcomes):
        warnings.append(
            f"{rule.baseline}, the baseline, has no finished trial yet, so there are no ratios"
        )
    warnings += [text for workload in rule.responses if (text := load_limit(outcomes, workload))]
    blocks = {o.trial.block for o in outcomes}
    if len(blocks) == 1:
        warnings.append(
            "1 block shows no spread between blocks, so there is no verdict; run more blocks"
        )
    return warnings
