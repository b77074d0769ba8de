"""Intervals that may be looked at as often as one likes."""

import math

import numpy as np
import pytest

from mydyno.stats.effects import critical, moderated


@pytest.mark.parametrize("alpha", [0.05, 0.01])
def test_whoever_looks_after_every_observation_is_wrong_no_more_often_than_agreed(alpha):
    draws = np.random.default_rng(1).normal(size=(4000, 60))
    n = np.arange(1, 61)
    means = np.cumsum(draws, axis=1) / n
    variances = (np.cumsum(draws**2, axis=1) - n * means**2) / np.maximum(n - 1, 1)
    reach = np.array([critical(k, max(k - 1, 1), alpha) for k in n])
    judged = np.isfinite(reach)
    outside = np.abs(means[:, judged]) > reach[judged] * np.sqrt(variances / n)[:, judged]
    assert 0 < outside.any(axis=1).mean() <= alpha


def test_it_is_wider_than_students_and_narrows():
    reach = [critical(n, n - 1, 0.05) for n in (6, 10, 20, 60)]
    assert reach == sorted(reach, reverse=True)
    assert reach[-1] > 2.0
    assert critical(2, 1, 0.05) == math.inf


def test_where_the_variance_is_known_it_is_the_normal_mixture():
    # Robbins, 1970: sqrt((n + g) / n * log((n + g) / (g alpha^2))) standard errors
    n, g, alpha = 10, 0.5, 0.05
    wanted = math.sqrt((n + g) / n * math.log((n + g) / (g * alpha**2)))
    assert critical(n, 1e8, alpha, g) == pytest.approx(wanted, rel=1e-4)


def test_a_variance_is_drawn_to_the_pooled_one():
    assert moderated([1.0], 4.0) == 4.0
    assert moderated([1.0, 3.0], 4.0) == pytest.approx((8 * 4.0 + 2.0) / 9)
