"""Anytime-valid intervals (confidence sequences): valid at every sample size simultaneously."""

from collections.abc import Sequence
from math import inf, sqrt

_G = 0.5  # prior precision of the effect, in units of one observation's precision
_PRIOR_DF = 8.0  # prior degrees of freedom of the pooled variance


def critical(n: int, df: float, alpha: float, g: float = _G) -> float:
    """Return the half width of the interval, in standard errors of a mean of `n` values.

    The confidence sequence of the t statistic with a normal prior of variance ``sigma^2 / g`` on
    the effect (Lindon, Ham, Tingley and Bojinov, 2022, theorem 2, for one coefficient): valid at
    all `n` together.  Infinite while `n` and `df` are too small for a finite interval.
    """
    r = g / (g + n)
    k = (1 / (alpha * sqrt(r))) ** (2 / (df + 1))
    if k * r >= 1:
        return inf
    return sqrt(df * (k - 1) / (1 - k * r))


def moderated(own: Sequence[float], pooled_variance: float, prior_df: float = _PRIOR_DF) -> float:
    """Return the variance of one arm's observations, shrunk towards the pooled one.

    ``(d0 s0^2 + d s^2) / (d0 + d)`` (Smyth, 2004, eq. 3).
    """
    if len(own) < 2:  # noqa: PLR2004 - a variance needs two values
        return pooled_variance
    mean = sum(own) / len(own)
    squares = sum((value - mean) ** 2 for value in own)
    return (prior_df * pooled_variance + squares) / (prior_df + len(own) - 1)
