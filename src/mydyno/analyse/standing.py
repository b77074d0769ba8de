"""Where each treatment stands beside the baseline, after any number of trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log1p, sqrt

import numpy as np
from numpy.typing import NDArray

from mydyno.analyse.anytime import critical, moderated
from mydyno.analyse.drift import Levels, levels, trials_of
from mydyno.analyse.steady import Learned, fit, learn

Array = NDArray[np.float64]
_FIRST = 8  # trials that noise and warm-ups are learned from at first; then twice as many, ...
_MOST = 128  # ... and no more: the rest would change little
_SHARED = 0.5  # the part of a warm-up's uncertainty that a treatment's trials have in common


@dataclass(frozen=True, slots=True)
class Pressed:
    """One finished trial: the binned log response and the campaign's time at its middle."""

    treatment: str
    at_s: float
    series: Array


@dataclass(frozen=True, slots=True)
class Aim:
    """What is asked: the margin as a ratio less one, and how often a claim may be wrong."""

    margin: float = 0.03
    alpha: float = 0.05


@dataclass(frozen=True, slots=True)
class Standing:
    """A treatment's log gain over the baseline.

    `low` and `high` hold for this treatment at any time, `surely` bounds the gain of all
    treatments together from below.  `verdict` is adopt, reject, equivalent or empty.
    """

    gain: float
    low: float
    high: float
    surely: float
    trials: int
    verdict: str = ""


def standings(
    trials: Sequence[Pressed], baseline: str, treatments: Sequence[str], aim: Aim
) -> Mapping[str, Standing]:
    """Return the standing of each of `treatments` that has a trial, if the baseline has one."""
    names = list(dict.fromkeys(t.treatment for t in trials))
    if baseline not in names or len(trials) < len(names) + 2:
        return {}
    learned = learned_from([t.series for t in trials])
    steady, _, warm = steady_levels(trials, learned)
    number = {name: i for i, name in enumerate(names)}
    told = trials_of([number[t.treatment] for t in trials], [t.at_s for t in trials], steady)
    found = levels(told, len(names))
    of = {name: [i for i, t in enumerate(trials) if t.treatment == name] for name in names}
    left = steady - found.level[told.treatment]
    shared = {name: _SHARED * float(np.mean(warm[of[name]])) / len(of[name]) for name in names}
    return {
        name: _standing(
            found.contrast(number[name], number[baseline]),
            _widening(left[of[name]], found, shared[name] + shared[baseline]),
            (len(of[name]), found.df),
            (aim, max(1, len(treatments))),
        )
        for name in treatments
        if name in number and name != baseline
    }


def steady_levels(trials: Sequence[Pressed], learned: Learned) -> tuple[Array, Array, Array]:
    """Return each trial's steady log level, its variance, and the part that the warm-up adds.

    What one start of a server differs from the next is in none of them.
    """
    told = np.zeros((3, len(trials)))
    for bins in {len(t.series) for t in trials}:
        which = [i for i, t in enumerate(trials) if len(t.series) == bins]
        found = fit(np.array([trials[i].series for i in which]), learned.texture, learned.prior)
        told[:, which] = found.level, found.variance, found.warm
    return told[0], told[1], told[2]


def learned_from(series: Sequence[Array]) -> Learned:
    """Return what the first trials teach: their number only doubles, so that it stays the same."""
    return learn(series[: taught_by(len(series))])


def taught_by(trials: int) -> int:
    """Return of how many trials it is learned after so many."""
    count = _FIRST
    while 2 * count <= min(trials, _MOST):
        count *= 2
    return count


def _widening(left: Array, found: Levels, shared: float) -> tuple[float, float]:
    """Return the factor and the variance that a treatment's own spread and warm-up add."""
    own = moderated(list(left), found.noise_sd**2)
    return max(1.0, sqrt(own) / found.noise_sd), shared


def _standing(
    contrast: tuple[float, float],
    widening: tuple[float, float],
    sizes: tuple[int, int],
    asked: tuple[Aim, int],
) -> Standing:
    gain, se = contrast
    factor, shared = widening
    n, df = sizes
    aim, claims = asked
    error = sqrt((factor * se) ** 2 + shared)
    reach = _times(critical(n, df, aim.alpha), error)
    surely = gain - _times(critical(n, df, aim.alpha / claims), error)
    standing = Standing(gain, gain - reach, gain + reach, surely, n)
    return replace(standing, verdict=_verdict(standing, aim))


def _times(reach: float, error: float) -> float:
    return inf if reach == inf else reach * error


def _verdict(standing: Standing, aim: Aim) -> str:
    margin = log1p(aim.margin)
    if standing.surely > 0 and standing.gain >= margin / 2:
        return "adopt"
    if standing.high >= margin:
        return ""
    return "equivalent" if standing.low > -margin else "reject"
