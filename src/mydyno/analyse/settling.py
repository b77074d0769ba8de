"""Steady-state tests over all trials of a treatment.

A jump late in one trial looks like the last step of its warm-up; in another trial it comes at
another time and in the other direction, while a warm-up is the same in all trials of a treatment.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import fdtrc

from mydyno.analyse.steady import NoiseModel

Array = NDArray[np.float64]
LONG_S = 700.0  # a trial that still moves after this time has no steady state
_BLOCK = 5  # bins: jumps last longer
_CERTAIN, _PERHAPS = 0.0003, 0.05
ENOUGH = 5  # trials: with more, a possible jump is ruled out
_REFERENCE_DF = 60
_FEWEST = 2  # trials
_SEVERAL = 4  # trials whose own differences give the standard error
_SIGMAS = 3.0
_NOTABLE = 0.04  # between thirds of a trial, as logs: more than a slow warm-up still does


def jumping(
    series: Mapping[str, Sequence[Array]], noise: NoiseModel
) -> tuple[list[str], list[str]]:
    """Return the treatments whose trials differ over time more than noise explains.

    The first list holds the significant ones, the second those with too few trials to rule it out.
    After subtraction of each trial's mean and of the course that a treatment's trials share, means
    of fifty seconds have the variance of noise (F test against the median treatment or the learned
    noise, whichever is larger).
    """
    found = {name: _roughness(of) for name, of in series.items()}
    known = {name: one for name, one in found.items() if one is not None}
    if not known:
        return [], []
    usual = max(_variance(noise), float(np.median([value for value, _ in known.values()])))
    chance = {n: fdtrc(df, _REFERENCE_DF, value / usual) for n, (value, df) in known.items()}
    certain = [name for name, p in chance.items() if p < _CERTAIN]
    possible = [
        n for n, p in chance.items() if _CERTAIN <= p < _PERHAPS and len(series[n]) < ENOUGH
    ]
    return certain, possible


def moving(series: Sequence[Array], noise: NoiseModel) -> bool:
    """Return whether the last third of a treatment's trials differs significantly from the second.

    The standard error is that of the learned noise or of the trials' own differences, whichever is
    smaller: a series that never settles looks like noise of long memory.
    """
    if not series:
        return False
    third = min(len(one) for one in series) // 3
    if third < _FEWEST:
        return False
    changes = [one[2 * third : 3 * third].mean() - one[third : 2 * third].mean() for one in series]
    error = np.sqrt(2 * noise.variance / (1 - noise.rho) ** 2 / third / len(series))
    if len(series) >= _SEVERAL:
        error = min(error, float(np.std(changes, ddof=1)) / np.sqrt(len(series)))
    return bool(abs(float(np.mean(changes))) > max(_SIGMAS * error, _NOTABLE))


def _roughness(series: Sequence[Array]) -> tuple[float, int] | None:
    """Return the variance of block means about course and mean, and its degrees of freedom."""
    blocks = min((len(one) for one in series), default=0) // _BLOCK
    if len(series) < _FEWEST or blocks < _FEWEST:
        return None
    means = np.array(
        [one[: blocks * _BLOCK].reshape(blocks, _BLOCK).mean(axis=1) for one in series]
    )
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    df = (len(series) - 1) * (blocks - 1)
    return float((rest**2).sum() / df), df


def _variance(noise: NoiseModel) -> float:
    """Return the variance of a block's mean under this noise."""
    apart = np.abs(np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK)))
    covariance = noise.variance / (1 - noise.rho**2) * noise.rho**apart
    return float(covariance.mean())
