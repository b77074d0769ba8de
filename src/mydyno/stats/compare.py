"""The verdicts of a campaign: each treatment against the baseline, and the winner."""

from collections.abc import Callable, Mapping, Sequence
from math import exp, log

from msgspec import structs

from mydyno.model import Finding, Outcome
from mydyno.stats.checks import TreatmentEvidence, mark_invalid, of_campaign, of_treatment
from mydyno.stats.conclusion import conclude, soaked
from mydyno.stats.contrasts import Cell, Effect, contrasts
from mydyno.stats.decide import Evidence, Guarded, Pair, decide, guarded, is_open, winner
from mydyno.stats.estimates import Estimates, ended, ends_of, log_of, plain, unit_of, zeros
from mydyno.stats.result import Comparison, Estimate, Ratio, Row
from mydyno.stats.rule import CONFIDENCE, Rule, detectable


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


Cells = Callable[[Sequence[Outcome]], set[tuple[str, str]]]


def compare(
    outcomes: Sequence[Outcome],
    rule: Rule,
    treatments: Sequence[str],
    cells: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Return the verdict on each of `treatments` under each workload of `rule`.

    `cells` holds each treatment's factor levels, if there are factors: main effects and
    interactions are then part of the result.  The result has findings and no words
    (`mydyno.report.words`).
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
        directions={workload: rule.direction(workload) for workload in rule.responses},
        findings=of_campaign(outcomes, rule),
    )
    comparison, few_changes = _with_parts(comparison, outcomes, rule, cells or {})
    conclusion = [*conclude(comparison, rule), *few_changes, *soak]
    return structs.replace(comparison, conclusion=conclusion)


def _with_parts(
    comparison: Comparison,
    outcomes: Sequence[Outcome],
    rule: Rule,
    cells: Mapping[str, Mapping[str, str]],
) -> tuple[Comparison, list[Finding]]:
    """Return it with main effects and interactions, and the few changes that matter most."""
    if not cells:
        return comparison, []
    from mydyno.stats.attribution import attribute, few  # noqa: PLC0415 - numpy and scipy

    attributed = [attribute(outcomes, rule, workload, cells) for workload in rule.responses]
    parts = [part for parts, _ in attributed for part in parts]
    together = [pair for _, pairs in attributed for pair in pairs]
    best = comparison.winner
    mattering = few(parts, cells.get(best, {}), best, rule) if best else None
    return (
        structs.replace(comparison, parts=parts, together=together),
        [mattering] if mattering else [],
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
    judged = TreatmentEvidence(evidence, word, rule, proving=proving, carries=measured.carries)
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
        detectable=detectable(effect) if effect else None,
        plain=plain(pair.own),
        unheld=list(guards.waived),
        ends=own,
        findings=of_treatment(judged, pair.own),
    )


def _blocks(trials: Mapping[str, Sequence[Outcome]]) -> int:
    return len({o.trial.block for mine in trials.values() for o in mine})


def _ratio(effect: Effect) -> Ratio:
    return Ratio(*effect.interval, confidence=CONFIDENCE)


def _estimate(logs: Sequence[float], response: str) -> Estimate | None:
    if not logs:
        return None
    return Estimate(exp(sum(logs) / len(logs)), unit_of(response))
