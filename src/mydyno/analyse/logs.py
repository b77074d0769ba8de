"""Ratios from logarithms, for any finite logarithm: what is beyond a float stays at its end."""

from math import exp, expm1

_MOST = 700.0  # e^700 is 1e304; two such ratios still have a finite product with a margin


def ratio(log_ratio: float) -> float:
    """Return the ratio whose natural logarithm this is, from 1e-304 to 1e304."""
    return exp(min(max(log_ratio, -_MOST), _MOST))


def change(log_ratio: float) -> float:
    """Return the ratio less one."""
    return expm1(min(max(log_ratio, -_MOST), _MOST))
