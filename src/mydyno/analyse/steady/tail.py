"""The end of a trial: what is measured of it, and what of the warm-up may still be in it.

Shapes tell that a warm-up is not over, but a slow one that is nearly over looks like a fast one
that is: extrapolated, levels were wrong by more than what was left.  So the end of a trial is taken
as it is, and what may be left of the warm-up is part of its variance.
"""

import numpy as np

from mydyno.analyse.steady.curves import Array, shapes
from mydyno.analyse.steady.model import Fit, NoiseModel

_SHARE = 1 / 3  # of a trial (ADR 0005)
_FEWEST = 2


def begin(bins: int) -> int:
    """Return the first bin of the end of a trial."""
    return bins - min(bins, max(_FEWEST, round(_SHARE * bins)))


def level(series: Array) -> Array:
    """Return the mean of the end of each of `series` (trials, bins)."""
    return np.asarray(series[:, begin(series.shape[1]) :].mean(axis=1))


def variance(found: Fit, texture: NoiseModel) -> Array:
    """Return the variance of each trial's level about its steady one.

    It is that of the mean of a first-order autoregression (Priestley, 1981, 5.3.5) and the expected
    square of what is left of the warm-up.
    """
    first = begin(found.bins)
    apart = np.arange(1, found.bins - first)
    count = found.bins - first
    noise = 1 + 2 * ((1 - apart / count) * texture.rho**apart).sum()
    noise *= texture.variance / (1 - texture.rho**2) / count
    columns = shapes().columns[:, first : found.bins, 1:].mean(axis=1)
    left = np.einsum("mi,rmi->rm", columns, found.factors[:, :, 1:])
    return np.asarray(noise + (found.weight * left**2).sum(axis=1))
