"""The end of a trial: what is measured of it, and what of the warm-up may still be in it.

The curves show that a warm-up is not over, but a slow one that is nearly over looks like a fast
one that is over: extrapolated levels were wrong by more than what was left.  So the level is the
mean of the end of the trial, and what may be left of the warm-up is part of its variance.
"""

import numpy as np

from mydyno.analyse.steady.model import Fit, NoiseModel
from mydyno.analyse.steady.warmups import Array, warmup_curves

_SHARE = 1 / 3  # of a trial (ADR 0005)
_FEWEST = 2


def begin(bins: int) -> int:
    """Return the first bin of the end of a trial."""
    return bins - min(bins, max(_FEWEST, round(_SHARE * bins)))


def level(series: Array) -> Array:
    """Return the mean of the end of each of `series` (trials, bins)."""
    return np.asarray(series[:, begin(series.shape[1]) :].mean(axis=1))


def variance(found: Fit, noise: NoiseModel) -> Array:
    """Return the variance of each trial's level about its steady one.

    It is that of the mean of a first-order autoregression (Priestley, 1981, 5.3.5) and the expected
    square of what is left of the warm-up.
    """
    first = begin(found.bins)
    apart = np.arange(1, found.bins - first)
    count = found.bins - first
    of_mean = 1 + 2 * ((1 - apart / count) * noise.rho**apart).sum()
    of_mean *= noise.variance / (1 - noise.rho**2) / count
    columns = warmup_curves().columns[:, first : found.bins, 1:].mean(axis=1)
    left = np.einsum("mi,rmi->rm", columns, found.factors[:, :, 1:])
    return np.asarray(of_mean + (found.weight * left**2).sum(axis=1))
