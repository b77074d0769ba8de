"""A campaign's verdicts: every treatment against the baseline, and which of them wins."""

from collections.abc import Callable, Mapping, Sequence
from math import exp, log

from mydyno.analyse import fixed
from mydyno.analyse.contrasts import Effect
from mydyno.analyse.measured import Measured
from mydyno.analyse.phrases import harmless, rejecting, sentence, unproven
from mydyno.analyse.plain import mean, plain
from mydyno.analyse.result import Comparison, Estimate, Ratio, Row
from mydyno.analyse.rule import CONFIDENCE, Rule
from mydyno.analyse.soak import soaked
from mydyno.analyse.spoiled import limited, sound
from mydyno.analyse.summary import unit_of
from mydyno.analyse.verdicts import (
    Guards,
    broken,
    detectable,
    held,
    unfelt,
    unshown,
    unstable,
    verdict,
)
from mydyno.model import Outcome, Status

_CARRIES = (
    "a switch had not taken hold when its segment was measured, so that the one before it shows "
    'through; compare with restarts: design.kind = "race"'
)
Cells = Callable[[Sequence[Outcome]], set[tuple[str, str]]]


def compare(
    outcomes: Sequence[Outcome],
    rule: Rule,
    treatments: Sequence[str],
    cells: Mapping[str, Mapping[str, str]] | None = None,
) -> Comparison:
    """Return the verdict on each of `treatments` under each workload of `rule`.

    `cells` holds each treatment's levels, where there are factors: then it is told which did it.
    """
    spent_s = sum(o.machine_time_s for o in outcomes)
    soak = soaked(outcomes, rule)
    outcomes = sound([o for o in outcomes if not o.trial.soak], rule)
    found = rows(outcomes, rule, treatments)
    winners = {
        workload: _winner([r for r in found if r.workload == workload], rule)
        for workload in rule.responses
    }
    responses = list(dict.fromkeys(rule.responses.values()))
    comparison = Comparison(
        campaign=rule.name,
        response=", ".join(responses),
        baseline=rule.baseline,
        machine_time_s=spent_s,
        winner=_winner(found, rule),
        winners=winners,
        treatments=found,
        sentence="",
        warnings=_warnings(outcomes, rule),
        soak=soak,
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

    from mydyno.analyse.attribution import attribute, few  # noqa: PLC0415 - numpy and scipy

    told = [attribute(outcomes, rule, workload, cells) for workload in rule.responses]
    parts = [part for parts, _ in told for part in parts]
    winner = comparison.winner
    return structs.replace(
        comparison,
        parts=parts,
        together=[pair for _, pairs in told for pair in pairs],
        share=few(parts, cells.get(winner, {}), winner, rule) if winner else "",
    )


def undecided(rule: Rule, treatments: Sequence[str]) -> Cells:
    """Return the function that tells of which workload and treatment more trials could tell."""

    def cells(outcomes: Sequence[Outcome]) -> set[tuple[str, str]]:
        found = rows(sound(outcomes, rule), rule, treatments)
        some = [row for row in found if _open(row, rule)]
        return {(row.workload, row.name) for row in some + _rivals(found, rule)}

    return cells


def _open(row: Row, rule: Rule) -> bool:
    """Return whether a verdict is still to come, or one of its guards still to be shown."""
    if row.verdict == "inconclusive":
        return True
    return row.verdict == "adopt" and bool(unshown(held(row, rule.guards_of(row.workload))))


def _rivals(found: Sequence[Row], rule: Rule) -> list[Row]:
    """Return the adopted rows, while the best is asked for and more than one may be it."""
    if not rule.choosing:
        return []
    told: list[Row] = []
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
            told += [row for row in found if row.workload == workload and row.name in may]
    return told


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


def _measure(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> Measured:
    if rule.sequential or rule.warming:
        from mydyno.analyse import sequential  # noqa: PLC0415 - numpy and scipy: half a second

        return sequential.measure(outcomes, rule, workload)
    return fixed.measure(outcomes, rule, workload)


def _with_sentence(comparison: Comparison, rule: Rule) -> Comparison:
    from msgspec import structs  # noqa: PLC0415 - one call at the very end

    return structs.replace(comparison, sentence=sentence(comparison, rule))


def _row(
    cell: tuple[str, str], rule: Rule, measured: Measured, trials: Mapping[str, Sequence[Outcome]]
) -> Row:
    treatment, workload = cell
    effect = measured.effects.get(treatment)
    margins = rule.guards_of(workload)
    guards = {
        name: (_ratio(effects[treatment]), margins[name])
        for name, effects in measured.guards.items()
        if treatment in effects
    }
    mine = trials.get(treatment, [])
    warnings = _failures(mine)
    both = (mine, trials.get(rule.baseline, []))
    waived = _waived(_gain(effect, rule, workload), guards, rule, workload, both) if effect else {}
    warnings += harmless(waived)
    kept = {name: guard for name, guard in guards.items() if name not in waived}
    word = _word(cell, rule, measured, (effect, kept), mine)
    proving = any(o.trial.block >= rule.proving_from for o in mine)
    if effect is None and word == "inconclusive" and proving and _blocks(trials) > 1:
        warnings.append("fewer than two blocks hold it and the baseline: no verdict")
    if measured.carries and treatment != rule.baseline:
        warnings.append(_CARRIES)
    if word == "adopt":
        warnings += unproven(kept)
    if word == "reject" and effect and _verdict(effect, rule, workload, {}) != "reject":
        warnings += rejecting(broken(kept))
    values = measured.values.get(treatment, [])
    return Row(
        name=treatment,
        workload=workload,
        verdict=word,
        durability=rule.class_of(treatment),
        trials=len(values),
        value=_estimate(values, rule.responses[workload]),
        effect=_ratio(effect) if effect else None,
        guards={name: ratio for name, (ratio, _) in guards.items()},
        warnings=warnings,
        detectable=detectable(effect) if effect else None,
        plain=plain(mine),
        unheld=list(waived),
    )


def _word(
    cell: tuple[str, str],
    rule: Rule,
    measured: Measured,
    found: tuple[Effect | None, Guards],
    mine: Sequence[Outcome],
) -> str:
    treatment, workload = cell
    effect, guards = found
    if treatment == rule.baseline:
        return "baseline"
    if mine and all(o.status in {Status.FAILED, Status.UNKNOWN} for o in mine):
        return "failed"
    if treatment in measured.unsteady:
        return "no-steady-state"
    doubtful = measured.carries or rule.baseline in measured.unsteady
    if effect is None or doubtful or treatment in measured.wavering:
        return "inconclusive"
    others = [sd for name, sd in measured.sds.items() if name != treatment]
    if unstable(measured.spreads.get(treatment, []), others):
        return "unstable"
    return _verdict(effect, rule, workload, guards)


def _verdict(effect: Effect, rule: Rule, workload: str, guards: Guards) -> str:
    """Return the verdict on an effect, whichever way is better."""
    return verdict(_gain(effect, rule, workload), rule.margin, guards)


def _gain(effect: Effect, rule: Rule, workload: str) -> Effect:
    return effect if rule.gain(1.0, workload) > 0 else effect.inverse()


def _waived(
    gain: Effect,
    guards: Guards,
    rule: Rule,
    workload: str,
    both: tuple[Sequence[Outcome], Sequence[Outcome]],
) -> Guards:
    """Return the guard on the spread, where nobody asked for it and the gain leaves it nothing."""
    name = f"{rule.responses[workload]}_logsd"
    if rule.guards is not None or name not in unshown(guards):
        return {}
    own, baseline = (mean(some, name) for some in both)
    if own is None or baseline is None or not unfelt(gain, own, baseline):
        return {}
    return {name: guards[name]}


def _blocks(trials: Mapping[str, Sequence[Outcome]]) -> int:
    return len({o.trial.block for mine in trials.values() for o in mine})


def _failures(trials: Sequence[Outcome]) -> list[str]:
    bad = [o for o in trials if o.status is not Status.OK]
    return [f"trial {o.trial.id} {o.status.value}: {o.error}" for o in bad]


def _ratio(effect: Effect) -> Ratio:
    return Ratio(*effect.interval, confidence=CONFIDENCE)


def _estimate(logs: Sequence[float], response: str) -> Estimate | None:
    if not logs:
        return None
    return Estimate(exp(sum(logs) / len(logs)), unit_of(response))


def _winner(found: Sequence[Row], rule: Rule) -> str | None:
    """Return the adopted treatment with the largest mean effect that no workload rejects."""
    spoiled = {
        r.name for r in found if r.verdict in {"reject", "unstable", "no-steady-state", "failed"}
    }
    gains: dict[str, list[float]] = {}
    for row in found:
        weaker = row.durability == "weaker" and not rule.weaker_may_win
        if row.verdict == "adopt" and row.effect and row.name not in spoiled and not weaker:
            gains.setdefault(row.name, []).append(rule.gain(log(row.effect.ratio), row.workload))
    if not gains:
        return None
    return max(gains, key=lambda name: sum(gains[name]))


def _warnings(outcomes: Sequence[Outcome], rule: Rule) -> list[str]:
    warnings: list[str] = []
    if rule.screening:
        return warnings
    if not any(o.trial.treatment == rule.baseline for o in outcomes):
        warnings.append(f"{rule.baseline}, the baseline, has no finished trial yet")
    warnings += [told for workload in rule.responses if (told := limited(outcomes, workload))]
    blocks = {o.trial.block for o in outcomes}
    if len(blocks) == 1:
        warnings.append("one block only: it shows no spread, so it gives no verdict")
    return warnings
