"""The guards of one treatment: their ratios, and the guards that cannot be evaluated."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from mydyno.analyse.contrasts import Effect
from mydyno.analyse.criteria import Guards, spread_is_harmless, unproven_guards
from mydyno.analyse.direction import HIGHER, known
from mydyno.analyse.estimates import Estimates, metric_of
from mydyno.analyse.plain import mean
from mydyno.analyse.result import Ratio, Row
from mydyno.analyse.rule import CONFIDENCE, Rule
from mydyno.model import Outcome, Status

NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Guarded:
    """`ratios` as measured, by guard; `held` and `waived` oriented so that less is better.

    `unevaluated` holds the guards that block an adoption, with the reason.
    """

    ratios: Mapping[str, Ratio]
    held: Guards
    waived: Guards
    unevaluated: Mapping[str, str]


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
        name: Ratio(*effects[pair.treatment].interval, confidence=CONFIDENCE)
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
        {name: why for name, why in missing.items() if why},
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


def _why_not(name: str, pair: Pair, rule: Rule, measured: Estimates) -> str:
    """Return why a guard cannot be evaluated, ``""`` where it can or need not be.

    A default guard need not be evaluated if the load does not measure it at all.
    """
    own, baseline = (_Values.of(name, some) for some in (pair.own, pair.baseline))
    asked = rule.guards_asked
    if not own.measured:
        return NOT_MEASURED if asked or baseline.positive else ""
    return _gaps(name, pair, own, baseline, measured) if asked else ""


def _gaps(name: str, pair: Pair, own: "_Values", baseline: "_Values", measured: Estimates) -> str:
    """Return why a guard that some trials measured cannot be evaluated, ``""`` if it can."""
    if own.share(own.measured) < baseline.share(baseline.measured):
        return f"measured in {own.measured} of {own.trials} trials only"
    less_is_better = known(name) != HIGHER
    if less_is_better and own.zeros == own.trials:
        return ""  # 0 is the best possible value
    if pair.treatment not in measured.guards.get(name, {}):
        return f"measured in {own.positive} of its trials and {baseline.positive} of the baseline's"
    many, few = (baseline, own) if less_is_better else (own, baseline)
    if many.share(many.zeros) > few.share(few.zeros):
        who = "the baseline's" if less_is_better else "its"
        return f"0 in {many.zeros} of {who} {many.trials} trials, so there is no ratio"
    return ""


@dataclass(frozen=True, slots=True)
class _Values:
    """Number of good `trials`, of those where a metric is above 0, and of those where it is 0."""

    trials: int
    positive: int
    zeros: int

    @classmethod
    def of(cls, name: str, outcomes: Sequence[Outcome]) -> "_Values":
        good = [o for o in outcomes if o.status is Status.OK]
        values = [v for o in good if (v := metric_of(o, name)) is not None and isfinite(v)]
        return cls(len(good), sum(v > 0 for v in values), sum(v <= 0 for v in values))

    @property
    def measured(self) -> int:
        return self.positive + self.zeros

    def share(self, count: int) -> float:
        return count / self.trials if self.trials else 0.0
