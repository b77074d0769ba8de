"""The decision criteria: from an effect and its guards to a verdict (ADR 0003)."""

from collections.abc import Mapping, Sequence
from math import log, sqrt

from mydyno.analyse.contrasts import Effect
from mydyno.analyse.logs import ratio
from mydyno.analyse.result import Ratio

# By name: the ratio to the baseline (lower is better) and the margin that is allowed.
Guards = Mapping[str, tuple[Ratio, float]]

_UNSTABLE_RANGE = 0.30  # relative range of one treatment's trials (TUNA, EuroSys 2025)
_UNSTABLE_SD = 3.0  # own spread against that of the other treatments (METHOD 5b)
_NOTABLE_SD = 0.10  # of log ratios: a smaller spread does not change the decision
_ENOUGH = 3
_SDS = 2.0  # to either side: this range holds nearly all seconds


def verdict(effect: Effect, margin: float, guards: Guards) -> str:
    """Return adopt, reject, equivalent or inconclusive for an effect on a higher-better response.

    A guard that is significantly broken rejects; one whose estimate is beyond the margin without
    significance makes the verdict inconclusive.
    """
    _, low, high = effect.interval
    if broken_guards(guards):
        return "reject" if low > 1 or high < 1 + margin else "inconclusive"
    if 1 / (1 + margin) < low and high < 1 + margin:
        return "equivalent"
    if effect.lower_bound > 0 and effect.log_ratio >= log(1 + margin) / 2:
        return "inconclusive" if _look_broken(guards) else "adopt"
    return "reject" if high < 1 + margin else "inconclusive"


def broken_guards(guards: Guards) -> Guards:
    """Return the guards that are significantly broken."""
    return {name: g for name, g in _look_broken(guards).items() if g[0].low > 1}


def unproven_guards(guards: Guards) -> Guards:
    """Return the guards that are not shown to be within their margins."""
    return {name: (g, margin) for name, (g, margin) in guards.items() if g.high >= 1 + margin}


def _look_broken(guards: Guards) -> Guards:
    return {name: (g, margin) for name, (g, margin) in guards.items() if g.ratio > 1 + margin}


def spread_is_harmless(gain: Effect, own_sd: float, baseline_sd: float) -> bool:
    """Return whether a larger spread of the response does no harm (ADR 0003).

    That is so if, at the low end of the gain's interval, the treatment's slow seconds still do more
    work than the baseline's fast ones; the spreads are standard deviations of logs.
    """
    return log(gain.interval[1]) > _SDS * (own_sd + baseline_sd)


def unstable(own: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether the trials of one treatment differ more than trials of one configuration may.

    `own` are the log ratios of its trials to the baseline at that time, `others` the standard
    deviations of the other treatments'.  Either its relative range exceeds 30 %, or its spread is
    three times theirs.
    """
    mine = spread(own)
    if mine is None:
        return False
    middle = sorted(own)[len(own) // 2]
    if ratio(max(own) - middle) - ratio(min(own) - middle) > _UNSTABLE_RANGE:
        return True
    if not others:
        return False
    usual = sqrt(sum(s * s for s in others) / len(others))
    # with three trials and little noise elsewhere, 1 in 30 would be called unstable by chance
    return mine > max(_UNSTABLE_SD * usual, _NOTABLE_SD)


def spread(logs: Sequence[float]) -> float | None:
    """Return the standard deviation of at least three values, else None."""
    if len(logs) < _ENOUGH:
        return None
    mean = sum(logs) / len(logs)
    return sqrt(sum((v - mean) ** 2 for v in logs) / (len(logs) - 1))


def detectable(effect: Effect) -> float:
    """Return the smallest ratio above 1 whose interval would have excluded 1."""
    return ratio(effect.critical * effect.se)
