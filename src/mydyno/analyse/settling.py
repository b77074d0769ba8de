"""Whether a treatment comes to a steady state at all: what no warm-up of a single trial can tell.

A jump late in one trial looks like the last step of its warm-up.  That of another trial comes at
another time, and goes the other way; a warm-up belongs to the treatment.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from mydyno.analyse.steady import NoiseModel

Array = NDArray[np.float64]
LONG_S = 700.0  # what still moves after so long does not settle
_BLOCK = 5  # bins: jumps stay for longer than that
_CERTAIN, _PERHAPS = 0.0003, 0.05
ENOUGH = 5  # trials after which what may be is not
_REFERENCE_DF = 60
_FEWEST = 2  # trials
_SEVERAL = 4  # trials whose own differences tell their error
_SIGMAS = 3.0
_NOTABLE = 0.04  # between thirds of a trial, as logs: more than a slow warm-up still does


def jumping(
    series: Mapping[str, Sequence[Array]], noise: NoiseModel
) -> tuple[list[str], list[str]]:
    """Return the treatments whose trials differ in their course more than noise lets them.

    Those that surely do come first, then those of too few trials that may do.

    Beside each trial's own mean and the course all of a treatment's trials share, means of fifty
    seconds have the variance of noise (F test, against the usual treatment or the noise that was
    learned, whichever is larger).
    """
    found = {name: _roughness(of) for name, of in series.items()}
    known = {name: told for name, told in found.items() if told is not None}
    if not known:
        return [], []
    usual = max(_variance(noise), float(np.median([value for value, _ in known.values()])))
    chance = {n: stats.f.sf(value / usual, df, _REFERENCE_DF) for n, (value, df) in known.items()}
    surely = [name for name, p in chance.items() if p < _CERTAIN]
    may = [n for n, p in chance.items() if _CERTAIN <= p < _PERHAPS and len(series[n]) < ENOUGH]
    return surely, may


def moving(series: Sequence[Array], noise: NoiseModel) -> bool:
    """Return whether the last third of a treatment's trials lies clear of the third before it.

    The standard error is of the noise that was learned or of the trials' own differences, whichever
    is smaller: what moves for ever looks like noise of long memory.
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
