"""A campaign's verdicts: every treatment against the baseline, and which of them wins."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log

from mydyno.analyse.contrasts import Cell, Effect, contrasts
from mydyno.analyse.phrases import sentence
from mydyno.analyse.result import Comparison, Estimate, Ratio, Row
from mydyno.analyse.summary import unit_of
from mydyno.analyse.verdicts import detectable, unproven, unstable, verdict
from mydyno.model import Outcome, Status

CONFIDENCE = 0.95
DEFAULT_GUARDS = {"latency_p99_s": 0.10, "{response}_logsd": 0.20}


@dataclass(frozen=True, slots=True)
class Rule:
    """What is decided on: `responses` by workload, `guards` and `margin` as ratios."""

    name: str
    baseline: str
    responses: Mapping[str, str]
    margin: float = 0.03
    guards: Mapping[str, float] | None = None
    durability: Mapping[str, str] | None = None
    weaker_may_win: bool = False

    def guards_of(self, workload: str) -> dict[str, float]:
        """Return the guards of one workload, its response's name filled in."""
        wanted = DEFAULT_GUARDS if self.guards is None else self.guards
        response = self.responses[workload]
        named = {name.replace("{response}", response): m for name, m in wanted.items()}
        # `tps_logsd` of a spec means the response of the workload, whatever its name
        return {f"{response}_logsd" if n == "tps_logsd" else n: m for n, m in named.items()}

    def gain(self, effect_log: float, workload: str) -> float:
        """Return the log gain that a log ratio is: a lower latency is a better one."""
        return -effect_log if self.responses[workload].startswith("latency_") else effect_log

    def class_of(self, treatment: str) -> str:
        """Return the treatment's durability class."""
        return (self.durability or {}).get(treatment, "same")


def compare(outcomes: Sequence[Outcome], rule: Rule, treatments: Sequence[str]) -> Comparison:
    """Return the verdict on each of `treatments` under each workload of `rule`."""
    rows = [
        row for workload in rule.responses for row in _rows(outcomes, rule, workload, treatments)
    ]
    winners = {
        workload: _winner([r for r in rows if r.workload == workload], rule)
        for workload in rule.responses
    }
    responses = list(dict.fromkeys(rule.responses.values()))
    comparison = Comparison(
        campaign=rule.name,
        response=", ".join(responses),
        baseline=rule.baseline,
        machine_time_s=sum(o.machine_time_s for o in outcomes),
        winner=_winner(rows, rule),
        winners=winners,
        treatments=rows,
        sentence="",
        warnings=_warnings(outcomes, rule),
    )
    return _with_sentence(comparison)


def _with_sentence(comparison: Comparison) -> Comparison:
    from msgspec import structs  # noqa: PLC0415 - one call at the very end

    return structs.replace(comparison, sentence=sentence(comparison))


def _rows(
    outcomes: Sequence[Outcome], rule: Rule, workload: str, treatments: Sequence[str]
) -> list[Row]:
    mine = [o for o in outcomes if o.trial.workload == workload]
    response = rule.responses[workload]
    logs = _logs(mine, response)
    effects = contrasts(logs, rule.baseline, confidence=CONFIDENCE, simultaneous=True)
    guards = {
        name: contrasts(_logs(mine, name), rule.baseline, confidence=CONFIDENCE, simultaneous=False)
        for name in rule.guards_of(workload)
    }
    rows = []
    for treatment in treatments:
        shown = {n: e[treatment] for n, e in guards.items() if treatment in e}
        rows.append(_row(mine, rule, (treatment, workload), logs, (effects.get(treatment), shown)))
    return rows


def _row(
    mine: Sequence[Outcome],
    rule: Rule,
    cell: tuple[str, str],
    logs: Mapping[Cell, float],
    found: tuple[Effect | None, Mapping[str, Effect]],
) -> Row:
    treatment, workload = cell
    effect, guard_effects = found
    guards = {
        name: (_ratio(e), rule.guards_of(workload)[name]) for name, e in guard_effects.items()
    }
    trials = [o for o in mine if o.trial.treatment == treatment]
    warnings = _failures(trials)
    word = _without_effect(trials)
    if effect:
        gained = replace(effect, log_ratio=rule.gain(effect.log_ratio, workload))
        word = _word(treatment, rule, logs, gained, guards)
    if treatment == rule.baseline:
        word = "baseline"
    elif effect is None and word != "failed" and len({o.trial.block for o in mine}) > 1:
        warnings.append("fewer than two blocks hold it and the baseline: no verdict")
    if word == "adopt":
        warnings += unproven(guards)
    values = [v for (name, _), v in logs.items() if name == treatment]
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
    )


def _word(
    treatment: str,
    rule: Rule,
    logs: Mapping[Cell, float],
    effect: Effect,
    guards: Mapping[str, tuple[Ratio, float]],
) -> str:
    ratios = _ratios(logs, rule.baseline)
    others = [r for name, r in ratios.items() if name != treatment]
    if unstable(ratios.get(treatment, []), others):
        return "unstable"
    return verdict(effect, rule.margin, guards)


def _without_effect(trials: Sequence[Outcome]) -> str:
    failed = trials and all(o.status is not Status.OK for o in trials)
    return "failed" if failed else "inconclusive"


def _failures(trials: Sequence[Outcome]) -> list[str]:
    bad = [o for o in trials if o.status is not Status.OK]
    return [f"trial {o.trial.id} {o.status.value}: {o.error}" for o in bad]


def _logs(outcomes: Sequence[Outcome], metric: str) -> dict[Cell, float]:
    """Return the log of a metric by treatment and block; trials without it are left out."""
    found: dict[Cell, float] = {}
    for o in outcomes:
        value = next((m.value for m in o.metrics if m.name == metric), 0.0)
        if o.status is Status.OK and value > 0:
            found[(o.trial.treatment, o.trial.block)] = log(value)
    return found


def _ratios(logs: Mapping[Cell, float], baseline: str) -> dict[str, list[float]]:
    """Return each treatment's ratios to the baseline of the same block."""
    found: dict[str, list[float]] = {}
    for (name, block), value in logs.items():
        if name != baseline and (baseline, block) in logs:
            found.setdefault(name, []).append(exp(value - logs[(baseline, block)]))
    return found


def _ratio(effect: Effect) -> Ratio:
    return Ratio(*effect.interval, confidence=CONFIDENCE)


def _estimate(logs: Sequence[float], response: str) -> Estimate | None:
    if not logs:
        return None
    return Estimate(exp(sum(logs) / len(logs)), unit_of(response))


def _winner(rows: Sequence[Row], rule: Rule) -> str | None:
    """Return the adopted treatment with the largest mean effect that no workload rejects."""
    spoiled = {r.name for r in rows if r.verdict in {"reject", "unstable", "failed"}}
    gains: dict[str, list[float]] = {}
    for row in rows:
        weaker = row.durability == "weaker" and not rule.weaker_may_win
        if row.verdict == "adopt" and row.effect and row.name not in spoiled and not weaker:
            gains.setdefault(row.name, []).append(rule.gain(log(row.effect.ratio), row.workload))
    if not gains:
        return None
    return max(gains, key=lambda name: sum(gains[name]))


def _warnings(outcomes: Sequence[Outcome], rule: Rule) -> list[str]:
    warnings = []
    if not any(o.trial.treatment == rule.baseline for o in outcomes):
        warnings.append(f"{rule.baseline}, the baseline, has no finished trial yet")
    blocks = {o.trial.block for o in outcomes}
    if len(blocks) == 1:
        warnings.append("one block only: it shows no spread, so it gives no verdict")
    return warnings
