"""The decision: which treatment may be adopted, which one wins, and whether a gate is passed.

Used by `compare`, by the designs that end a treatment's trials or look for the best one, by the
report and for the exit code of ``compare --fail-unless``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

from mydyno.model import Figure, Finding, Outcome, TrialStatus
from mydyno.stats.effects import Effect
from mydyno.stats.estimates import Estimates, good_values, mean, share_lost
from mydyno.stats.result import Comparison, Ends, Ratio, Row
from mydyno.stats.rule import (
    HIGHER,
    Guards,
    Rule,
    known,
    spread,
    spread_is_harmless,
    unproven_guards,
    unstable,
    verdict,
)

NOT_MEASURED = "not-measured"
UNEVALUATED = "guard-unevaluated"


@dataclass(frozen=True, slots=True)
class Guarded:
    """`ratios` as measured, by guard; `held` and `waived` oriented so that less is better.

    `unevaluated` holds for each guard that cannot be evaluated a finding with the reason, `why`,
    and its counts; such a guard blocks an adoption.
    """

    ratios: Mapping[str, Ratio]
    held: Guards
    waived: Guards
    unevaluated: Mapping[str, Finding]


@dataclass(frozen=True, slots=True)
class Pair:
    """A treatment's trials under one workload, and the baseline's."""

    treatment: str
    workload: str
    own: Sequence[Outcome]
    baseline: Sequence[Outcome]


def guarded(pair: Pair, rule: Rule, measured: Estimates) -> Guarded:
    """Return the ratios and the state of a treatment's guards."""
    margins = rule.guards_of(pair.workload)
    ratios = {
        name: Ratio(*effects[pair.treatment].interval)
        for name, effects in measured.guards.items()
        if pair.treatment in effects
    }
    turned = {name: (oriented(name, ratio), margins[name]) for name, ratio in ratios.items()}
    waived = _waived(measured.effects.get(pair.treatment), turned, rule, pair)
    missing = {name: _why_not(name, pair, rule, measured) for name in margins}
    return Guarded(
        ratios,
        {name: guard for name, guard in turned.items() if name not in waived},
        waived,
        {name: finding for name, finding in missing.items() if finding},
    )


def oriented(name: str, ratio: Ratio) -> Ratio:
    """Return a guard's ratio so that less is better; only known throughputs are inverted."""
    if known(name) != HIGHER:
        return ratio
    return Ratio(1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low, ratio.confidence)


def held(row: Row, rule: Rule) -> Guards:
    """Return the guards that count for a row's verdict."""
    margins = rule.guards_of(row.workload)
    return {n: (oriented(n, r), margins[n]) for n, r in row.guards.items() if n not in row.unheld}


def _waived(effect: Effect | None, guards: Guards, rule: Rule, pair: Pair) -> Guards:
    """Return the default guard on the spread, if the gain is so large that it does not matter."""
    name = f"{rule.responses[pair.workload]}_logsd"
    if effect is None or rule.guards is not None or name not in unproven_guards(guards):
        return {}
    gain = effect if rule.gain(1.0, pair.workload) > 0 else effect.inverse()
    own, baseline = (mean(some, name) for some in (pair.own, pair.baseline))
    if own is None or baseline is None or not spread_is_harmless(gain, own, baseline):
        return {}
    return {name: guards[name]}


def _why_not(name: str, pair: Pair, rule: Rule, measured: Estimates) -> Finding | None:
    """Return why a guard cannot be evaluated, None where it can or need not be.

    A default guard need not be evaluated if the load does not measure it at all.
    """
    own, baseline = (_Values.of(name, some) for some in (pair.own, pair.baseline))
    asked = rule.guards_asked
    if not own.measured:
        return _unevaluated(name, NOT_MEASURED) if asked or baseline.positive else None
    return _gaps(name, pair, own, baseline, measured) if asked else None


def _unevaluated(guard: str, why: str, **figures: Figure) -> Finding:
    return Finding(UNEVALUATED, {"guard": guard, "why": why, **figures})


def _gaps(
    name: str, pair: Pair, own: "_Values", baseline: "_Values", measured: Estimates
) -> Finding | None:
    """Return why a guard that some trials measured cannot be evaluated, None if it can."""
    if own.share(own.measured) < baseline.share(baseline.measured):
        return _unevaluated(name, "partly-measured", measured=own.measured, trials=own.trials)
    less_is_better = known(name) != HIGHER
    if less_is_better and own.zeros == own.trials:
        return None  # 0 is the best possible value
    if pair.treatment not in measured.guards.get(name, {}):
        counts = {"own": own.positive, "baseline": baseline.positive}
        return _unevaluated(name, "few-values", **counts)
    many, few = (baseline, own) if less_is_better else (own, baseline)
    if many.share(many.zeros) > few.share(few.zeros):
        code = "zeros-of-baseline" if less_is_better else "zeros"
        return _unevaluated(name, code, zeros=many.zeros, trials=many.trials)
    return None


@dataclass(frozen=True, slots=True)
class _Values:
    """Number of good `trials`, of those where a metric is above 0, and of those where it is 0."""

    trials: int
    positive: int
    zeros: int

    @classmethod
    def of(cls, name: str, outcomes: Sequence[Outcome]) -> "_Values":
        good = sum(o.status is TrialStatus.OK for o in outcomes)
        values = good_values(outcomes, name)
        return cls(good, sum(v > 0 for v in values), sum(v <= 0 for v in values))

    @property
    def measured(self) -> int:
        return self.positive + self.zeros

    def share(self, count: int) -> float:
        return count / self.trials if self.trials else 0.0


GATES = ("adopt", "reject", "equivalent")  # the verdicts that decide
_DISQUALIFYING = frozenset({"reject", "unstable", "no-steady-state", "failed"})
_NONE = frozenset({"inconclusive", "no-steady-state"})
LOST = frozenset({"failed", "unstable"})
PASSED, ANOTHER, FAILED, NO_VERDICT = 0, 1, 3, 5


@dataclass(frozen=True, slots=True)
class Evidence:
    """The evidence on one treatment under one workload.

    `zeros` counts the trials, its own and the baseline's, whose response is 0 and has no ratio.
    """

    treatment: str
    workload: str
    effect: Effect | None
    guards: Guarded
    own: Ends
    baseline: Ends
    zeros: int = 0


def failing(own: Ends, baseline: Ends) -> str:
    """Return ``failed`` or ``unstable`` where more trials fail than the baseline's, else ``""``.

    One failed trial is enough where the baseline has none: the few trials of a campaign cannot show
    that it is as reliable.  Where both fail, the larger share counts.  ``failed`` means that most
    trials are lost, or all of them whatever the baseline does (docs/reference/method.md).
    """
    if own.lost == 0:
        return ""
    if own.lost == own.trials:
        return "failed"
    if share_lost(own) <= share_lost(baseline):
        return ""
    return "failed" if 2 * own.lost > own.trials else "unstable"


def decide(evidence: Evidence, rule: Rule, measured: Estimates) -> str:
    """Return the verdict on a treatment under a workload."""
    treatment, effect = evidence.treatment, evidence.effect
    if treatment == rule.baseline:
        return "baseline"
    if word := failing(evidence.own, evidence.baseline):
        return word
    if treatment in measured.unsteady:
        return "no-steady-state"
    no_basis = measured.carries or rule.baseline in measured.unsteady or evidence.zeros > 0
    if effect is None or no_basis or treatment in measured.wavering:
        return "inconclusive"
    others = [spread(logs) for name, logs in measured.spreads.items() if name != treatment]
    if unstable(measured.spreads.get(treatment, []), [sd for sd in others if sd is not None]):
        return "unstable"
    word = by_effect(effect, rule, evidence.workload, evidence.guards.held)
    return "inconclusive" if word == "adopt" and evidence.guards.unevaluated else word


def by_effect(effect: Effect, rule: Rule, workload: str, guards: Guards) -> str:
    """Return the verdict on an effect and its guards, for either direction of the response."""
    gain = effect if rule.gain(1.0, workload) > 0 else effect.inverse()
    return verdict(gain, rule.margin, guards)


def is_open(row: Row, rule: Rule) -> bool:
    """Return whether more trials could still change a verdict, or show one of its guards.

    A failed treatment is decided, and so is one whose guard is not measured at all.
    """
    if row.verdict == "inconclusive":
        reasons = {finding.figures["why"] for finding in unevaluated(row)}
        return NOT_MEASURED not in reasons or row.effect is None
    return row.verdict == "adopt" and bool(unproven_guards(held(row, rule)))


_UNLIKELY = 0.2  # promise below which a treatment leaves, ...
_HALF = 0.5  # of a budget: treatments that leave make room for more trials of the others
_EARLY = 0.25  # ... and less in an earlier part of the campaign, by the square of the share


def given_up(effect: Effect | None, rule: Rule, workload: str) -> bool:
    """Return whether an undecided treatment is unlikely to be adopted, however long it is measured.

    Most treatments of a race are no better than the baseline; to show how little each of them
    changes would take most of its time.  One that the next trial will rather reject stays.
    """
    if effect is None:
        return False
    if rule.method.looks.budget_s and effect.share < _HALF:
        return False
    if effect.promise >= _UNLIKELY * min(1.0, effect.share / _EARLY) ** 2:
        return False
    next_se = effect.se * sqrt(effect.pairs / (effect.pairs + 1))
    expected_high = rule.gain(effect.log_ratio, workload) + effect.critical * next_se
    return expected_high > log(1 + rule.margin)


def unevaluated(row: Row) -> list[Finding]:
    """Return the findings about the guards of a row that could not be evaluated."""
    return [finding for finding in row.findings if finding.code == UNEVALUATED]


def winner(rows: Sequence[Row], rule: Rule) -> str | None:
    """Return the adopted treatment with the largest mean gain, None where there is none.

    No workload may reject it, lose trials with it, or have a guard that could not be evaluated.
    """
    against = {r.name for r in rows if r.verdict in _DISQUALIFYING or unevaluated(r)}
    gains: dict[str, list[float]] = {}
    for row in rows:
        weaker = row.durability == "weaker" and not rule.weaker_may_win
        if row.verdict == "adopt" and row.effect and row.name not in against and not weaker:
            gains.setdefault(row.name, []).append(rule.gain(log(row.effect.ratio), row.workload))
    return max(gains, key=lambda name: sum(gains[name]), default=None)


def gate(comparison: Comparison, wanted: str) -> int:
    """Return the exit code of ``compare --fail-unless WANTED``.

    0: it holds; for `adopt` that there is a winner, else that every row has that verdict.  1: there
    is another verdict.  3: a treatment failed or is unstable.  5: there is no verdict.
    """
    rows = [r for r in comparison.treatments if r.verdict != "baseline"]
    words = {r.verdict for r in rows}
    if words & LOST:
        return FAILED
    holds = comparison.winner is not None if wanted == "adopt" else words == {wanted}
    if holds:
        return PASSED
    return NO_VERDICT if words <= _NONE else ANOTHER
