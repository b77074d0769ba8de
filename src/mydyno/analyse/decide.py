"""The decision: which treatment may be adopted, which one wins, and whether a gate is passed.

Used by `compare`, by the designs that end a treatment's trials or look for the best one, by the
report and for the exit code of ``compare --fail-unless``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

from mydyno.analyse.contrasts import Effect
from mydyno.analyse.criteria import Guards, unproven_guards, unstable, verdict
from mydyno.analyse.ends import share_lost
from mydyno.analyse.estimates import Estimates
from mydyno.analyse.guards import NOT_MEASURED, Guarded, held
from mydyno.analyse.result import Comparison, Ends, Row
from mydyno.analyse.rule import Rule

GATES = ("adopt", "reject", "equivalent")  # verdicts that ``--fail-unless`` may name
_DISQUALIFYING = frozenset({"reject", "unstable", "no-steady-state", "failed"})
_NONE = frozenset({"inconclusive", "no-steady-state"})
_LOST = frozenset({"failed", "unstable"})
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
    others = [sd for name, sd in measured.sds.items() if name != treatment]
    if unstable(measured.spreads.get(treatment, []), others):
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
        return NOT_MEASURED not in row.unevaluated.values() or row.effect is None
    return row.verdict == "adopt" and bool(unproven_guards(held(row, rule)))


def winner(rows: Sequence[Row], rule: Rule) -> str | None:
    """Return the adopted treatment with the largest mean gain, None where there is none.

    No workload may reject it, lose trials with it, or have a guard that could not be evaluated.
    """
    against = {r.name for r in rows if r.verdict in _DISQUALIFYING or r.unevaluated}
    gains: dict[str, list[float]] = {}
    for row in rows:
        weaker = row.durability == "weaker" and not rule.weaker_may_win
        if row.verdict == "adopt" and row.effect and row.name not in against and not weaker:
            gains.setdefault(row.name, []).append(rule.gain(log(row.effect.ratio), row.workload))
    return best_of(gains)


def best_of(gains: Mapping[str, Sequence[float]]) -> str | None:
    """Return the name with the largest sum of log gains, None if there is none."""
    return max(gains, key=lambda name: sum(gains[name])) if gains else None


def gate(comparison: Comparison, wanted: str) -> int:
    """Return the exit code of ``compare --fail-unless WANTED``.

    0: it holds; for `adopt` that there is a winner, else that every row has that verdict.  1: there
    is another verdict.  3: a treatment failed or is unstable.  5: there is no verdict.
    """
    rows = [r for r in comparison.treatments if r.verdict != "baseline"]
    words = {r.verdict for r in rows}
    if words & _LOST:
        return FAILED
    holds = comparison.winner is not None if wanted == "adopt" else words == {wanted}
    if holds:
        return PASSED
    return NO_VERDICT if words <= _NONE else ANOTHER
