"""Planned looks: the error is spent over them, and no more of it than was promised."""

import numpy as np
import pytest
from scipy.special import ndtri

from mydyno.stats.drift import Contrast
from mydyno.stats.looks import Looks, each_of, last_bound, nominal

LOOKS = (2, 3, 4, 6, 8)
SHARES = (0.25, 0.375, 0.5, 0.75, 1.0)


def _errors(alpha: float) -> list[float]:
    return [nominal(LOOKS[:n], SHARES[:n], alpha) for n in range(1, len(LOOKS) + 1)]


@pytest.mark.parametrize("alpha", [0.05, 0.002])
def test_looks_together_err_as_often_as_promised(alpha):
    sums = np.random.default_rng(1).normal(size=(400_000, 8)).cumsum(axis=1)
    bounds = -ndtri(np.array(_errors(alpha)) / 2)
    z = np.abs(sums[:, [n - 1 for n in LOOKS]]) / np.sqrt(LOOKS)
    crossed = (z > bounds).any(axis=1).mean()
    assert crossed == pytest.approx(alpha, rel=0.05 if alpha > 0.01 else 0.15)


def test_each_look_spends_its_share():
    sums = np.random.default_rng(2).normal(size=(400_000, 8)).cumsum(axis=1)
    bounds = -ndtri(np.array(_errors(0.05)) / 2)
    z = np.abs(sums[:, [n - 1 for n in LOOKS]]) / np.sqrt(LOOKS)
    by_then = [(z[:, :n] > bounds[:n]).any(axis=1).mean() for n in range(1, len(LOOKS) + 1)]
    assert by_then == pytest.approx([0.05 * share**0.5 for share in SHARES], abs=0.002)


def test_one_look_at_the_end_is_that_of_a_fixed_number_of_trials():
    assert nominal([5], [1.0], 0.05) == pytest.approx(0.05)


def test_a_look_that_may_spend_nothing_more_decides_nothing():
    assert nominal([2, 3], [1.0, 1.0], 0.05) < 1e-5


def test_the_share_is_that_of_blocks_or_of_the_budget_whichever_is_further():
    assert Looks(blocks=8).share(1, 5e9) == 0.25
    assert Looks(blocks=None, budget_s=1000.0).share(0, 600.0) == 0.6
    assert Looks(blocks=8, budget_s=1000.0).share(5, 600.0) == 0.75
    assert Looks(budget_s=1000.0).share(9, 1100.0) == 1.0
    assert 0 < Looks().share(0, 1.0) < Looks().share(5, 1.0) <= 1


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_comparisons_with_one_control_err_together_as_often_as_promised(correlation):
    chance = np.random.default_rng(3)
    common, own = chance.normal(size=(200_000, 1)), chance.normal(size=(200_000, 12))
    z = np.sqrt(correlation) * common + np.sqrt(1 - correlation) * own
    each = each_of(12, correlation, 0.05)
    assert (z.max(axis=1) > -ndtri(each)).mean() == pytest.approx(0.05, abs=0.003)
    assert each == pytest.approx(1 - 0.95 ** (1 / 12)) or correlation > 0


def test_one_comparison_has_all_of_the_error():
    assert each_of(1, 0.3, 0.05) == pytest.approx(0.05)


def test_the_last_look_follows_from_the_pace_so_far():
    count, bound = last_bound([2, 3], [0.25, 0.375], 0.05)
    assert count == 8
    shares = [n / 8 for n in range(2, 9)]
    assert bound == pytest.approx(-ndtri(nominal(range(2, 9), shares, 0.05) / 2), abs=1e-6)
    assert last_bound([2], [1.0], 0.05)[0] == 2


def _contrast(models) -> Contrast:
    p, at, se = np.array(models).T
    mean = float(p @ at)
    return Contrast(mean, float(np.sqrt(p @ (se**2 + (at - mean) ** 2))), np.array(models))


def test_an_interval_over_several_models_is_that_of_their_mixture():
    found = _contrast([[0.7, 0.10, 0.01], [0.3, 0.13, 0.04]])
    half = found.critical(0.05) * found.se
    chance = np.random.default_rng(4)
    which = chance.choice(2, size=400_000, p=[0.7, 0.3])
    values = chance.normal(found.models[which, 1], found.models[which, 2])
    assert (np.abs(values - found.log_ratio) > half).mean() == pytest.approx(0.05, abs=0.002)


def test_an_interval_of_one_model_is_the_normal_one():
    assert _contrast([[1.0, 0.1, 0.02]]).critical(0.05) == pytest.approx(1.96, abs=0.001)


def test_a_treatment_whose_trials_disagree_has_the_wider_interval():
    alone = _contrast([[1.0, 0.1, 0.02]])

    def half(left: list[float]) -> float:
        own = alone.with_own_noise(np.array(left), 0.02)
        return own.critical(0.05) * own.se

    steady, usual, wild = half([0.0, 0.0, 0.0, 0.0]), half([-0.02, 0.02]), half([-0.15, 0.15])
    assert 1.96 * 0.02 <= steady < usual < wild
    assert steady < 2.0 * 0.02 * 1.1
    assert wild > 5 * 0.02


def test_what_many_trials_show_of_a_treatments_noise_is_taken_as_it_is():
    own = np.random.default_rng(5).normal(0, 0.08, 40)
    found = _contrast([[1.0, 0.1, 0.02 / 40**0.5]]).with_own_noise(own, 0.02)
    assert found.se == pytest.approx(0.08 / 40**0.5, rel=0.1)
