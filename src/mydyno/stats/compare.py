"""The verdicts of a campaign: each treatment against the baseline, the winner, the conclusion."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import exp, log, sqrt

from msgspec import structs

from mydyno.model import Figure, Finding, FindingPlace, Outcome, TrialStatus
from mydyno.stats.ceiling import ceilings
from mydyno.stats.checks import (
    TreatmentEvidence,
    counts,
    ending,
    mark_invalid,
    of_campaign,
    of_treatment,
    versus,
)
from mydyno.stats.decide import (
    LOST,
    Evidence,
    Guarded,
    Pair,
    decide,
    given_up,
    guarded,
    held,
    is_open,
    unevaluated,
    winner,
)
from mydyno.stats.effects import Cell, by_key, contrasts, ratio
from mydyno.stats.effects import change as change_of
from mydyno.stats.estimates import Estimates, ended, ends_of, log_of, plain, unit_of, zeros
from mydyno.stats.result import Comparison, Ends, Estimate, Ratio, Row
from mydyno.stats.rule import (
    CONFIDENCE,
    Estimator,
    Goal,
    Guards,
    Rule,
    broken_guards,
    is_lower,
)

_QUARTERS = 4
_FEWEST = 24  # bins: with fewer, quarters are too short
_SURE = 2.8  # standard errors: Student's t for four degrees of freedom
_BATCHES = 3  # of a quarter, whose means are taken for independent


def conclude(comparison: Comparison, rule: Rule) -> list[Finding]:
    """Return who wins, by how much and with which interval, or why nobody does."""
    if comparison.winner:
        return [_winner(comparison, comparison.winner)]
    if comparison.parts and rule.method.goal is Goal.FACTORS:
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
        "baseline_trials": next(
            r.trials
            for r in comparison.treatments
            if r.workload == row.workload and r.name == comparison.baseline
        ),
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
    if not all(r.effect is None for r in rows if r.verdict not in LOST):
        return [_none_better(comparison, rows, rule), *lost]
    if lost:
        return [Finding("all-lost"), *lost]
    if all(r.verdict in LOST for r in rows):
        return [Finding("all-unstable")]
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
    ends = [(r, end) for r in rows if r.effect for end in (r.effect.low, r.effect.high)]
    most = max((rule.gain(log(end), row.workload) for row, end in ends), default=0.0)
    figures: dict[str, Figure] = {"baseline": comparison.baseline}
    return Finding("none-better", figures | ({"most": ratio(most)} if most > 0 else {}))


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _lost(comparison: Comparison, rows: Sequence[Row]) -> list[Finding]:
    """Return which treatment lost the largest share of its trials, nothing where none failed."""
    unfit = [r for r in rows if r.ends.lost and r.verdict in LOST]
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
    error of the difference is by batch means (Law and Kelton, 2000, chapter 9.5).  It held where
    the interval excludes a loss of more than the margin.
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
    worse = change < -_SURE * error and ratio(-change) > 1 + rule.margin / 2
    # gains have the sign of what is better: of a latency they are the negative
    shown = -change if is_lower(response, rule.lower) else change
    low, high = (change_of(shown + side * _SURE * error) for side in (-1, 1))
    held_it = ratio(_SURE * error - change) <= 1 + rule.margin
    figures: Mapping[str, Figure] = {
        "length_s": series.t_s[-1],
        "change": change_of(shown),
        "low": low,
        "high": high,
    }
    word = "worse" if worse else "held" if held_it else "unclear"
    return Finding(f"soak-{word}", figures, place)


def _error_squared(values: Sequence[float]) -> float:
    size = len(values) // _BATCHES
    means = [sum(values[i * size : (i + 1) * size]) / size for i in range(_BATCHES)]
    middle = sum(means) / _BATCHES
    return sum((m - middle) ** 2 for m in means) / (_BATCHES - 1) / _BATCHES


def measure(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> Estimates:
    """Return effects within blocks, simultaneous over all treatments for the response."""
    mine = [o for o in outcomes if o.trial.workload == workload]
    logs = _logs(mine, rule.responses[workload])
    return Estimates(
        effects=contrasts(logs, rule.baseline, confidence=CONFIDENCE, simultaneous=True),
        guards={
            name: contrasts(
                _logs(mine, name), rule.baseline, confidence=CONFIDENCE, simultaneous=False
            )
            for name in rule.guards_of(workload)
        },
        values=by_key((name, value) for (name, _), value in logs.items()),
        spreads=_ratios(logs, rule.baseline),
    )


def _logs(outcomes: Sequence[Outcome], metric: str) -> dict[Cell, float]:
    """Return the log of a metric by treatment and block; trials without it are left out."""
    found = {(o.trial.treatment, o.trial.block): log_of(o, metric) for o in outcomes}
    return {cell: value for cell, value in found.items() if value is not None}


def _ratios(logs: Mapping[Cell, float], baseline: str) -> dict[str, list[float]]:
    """Return each treatment's log ratios to the baseline of the same block."""
    return by_key(
        (name, value - logs[(baseline, block)])
        for (name, block), value in logs.items()
        if name != baseline and (baseline, block) in logs
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
    interactions are then part of the result.  The result has findings and no words
    (`mydyno.report.words`).
    """
    from mydyno.stats.plateaus import plateaus  # noqa: PLC0415 - numpy and scipy

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
        errors=_errors(outcomes, rule),
        findings=of_campaign(outcomes, rule),
        plateaus=plateaus(outcomes, rule),
        ceilings=ceilings(outcomes),
    )
    comparison, few_changes = _with_parts(comparison, outcomes, rule, cells or {})
    conclusion = [*conclude(comparison, rule), *few_changes, *soak]
    return structs.replace(comparison, conclusion=conclusion)


def _errors(outcomes: Sequence[Outcome], rule: Rule) -> dict[str, dict[str, float]]:
    """Return by workload what the error of its ratios is due to, where a model estimates that."""
    if rule.method.estimator is Estimator.BLOCKS or rule.method.goal is Goal.FACTORS:
        return {}
    from mydyno.stats.sequential import error_shares  # noqa: PLC0415 - numpy and scipy

    found = {workload: error_shares(outcomes, rule, workload) for workload in rule.responses}
    return {workload: shares for workload, shares in found.items() if shares}


def _with_parts(
    comparison: Comparison,
    outcomes: Sequence[Outcome],
    rule: Rule,
    cells: Mapping[str, Mapping[str, str]],
) -> tuple[Comparison, list[Finding]]:
    """Return it with main effects and interactions, and the few changes that matter most."""
    if not cells:
        return comparison, []
    from mydyno.stats.factors import attribute, few  # noqa: PLC0415 - numpy and scipy

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
        valid = mark_invalid(outcomes, rule)
        some: list[Row] = []
        for workload in rule.responses:
            found, measured = _rows(valid, rule, treatments, workload)
            some += [row for row in found if is_open(row, rule) and not _left(row, rule, measured)]
            some += _rivals(found, rule)
        return {(row.workload, row.name) for row in some}

    return cells


def _left(row: Row, rule: Rule, measured: Estimates) -> bool:
    effect = measured.effects.get(row.name)
    return row.verdict == "inconclusive" and given_up(effect, rule, row.workload)


def _rivals(found: Sequence[Row], rule: Rule) -> list[Row]:
    """Return the adopted rows that may be the best, where the design looks for the best one."""
    if rule.method.goal is not Goal.BEST:
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
    if rule.method.goal is Goal.FACTORS:
        treatments = [name for name in treatments if name != rule.baseline]
    every = (_rows(outcomes, rule, treatments, workload) for workload in rule.responses)
    return [row for found, _ in every for row in found]


def _rows(
    outcomes: Sequence[Outcome], rule: Rule, treatments: Sequence[str], workload: str
) -> tuple[list[Row], Estimates]:
    """Return the rows of one workload, and the estimates they rest on."""
    measured = _measure(outcomes, rule, workload)
    mine = (o for o in outcomes if o.trial.workload == workload)
    trials = by_key((o.trial.treatment, o) for o in mine)
    return [_row((name, workload), rule, measured, trials) for name in treatments], measured


def _measure(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> Estimates:
    if rule.method.estimator is not Estimator.BLOCKS:
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
        # the trials that were measured are too few for an effect
        effect, guards = None, Guarded({}, {}, {}, {})
    blocks = {o.trial.block for mine in trials.values() for o in mine}
    proving = any(o.trial.block >= rule.method.proving_from for o in pair.own) and len(blocks) > 1
    last = any(o.trial.block == max(blocks) for o in pair.own)
    judged = TreatmentEvidence(evidence, word, rule, proving, measured.carries, last)
    values = measured.values.get(treatment, [])
    return Row(
        name=treatment,
        workload=workload,
        verdict=word,
        durability=rule.class_of(treatment),
        trials=len(values),
        value=_estimate(values, rule.responses[workload]),
        effect=Ratio(*effect.interval) if effect else None,
        guards=dict(guards.ratios),
        detectable=ratio(max(effect.simultaneous, effect.critical) * effect.se) if effect else None,
        plain=plain(pair.own),
        unheld=list(guards.waived),
        ends=own,
        findings=of_treatment(judged, pair.own),
    )


def _estimate(logs: Sequence[float], response: str) -> Estimate | None:
    return Estimate(exp(sum(logs) / len(logs)), unit_of(response)) if logs else None
