"""Ratios from logarithms, for any finite logarithm; results are clamped to finite floats."""

from math import exp, expm1

_MOST = 300.0  # e^300 is 1e130: products and quotients of such ratios are finite as well


def ratio(log_ratio: float) -> float:
    """Return the ratio whose natural logarithm this is, from 1e-130 to 1e130."""
    return exp(min(max(log_ratio, -_MOST), _MOST))


def change(log_ratio: float) -> float:
    """Return the ratio less one."""
    return expm1(min(max(log_ratio, -_MOST), _MOST))
