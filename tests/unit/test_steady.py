"""Steady levels: the closed forms against integration, and their calibration on known truth."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mydyno.model import Trial
from mydyno.stats.steady import NoiseModel, Prior, fit, learn, warmup_curves
from mydyno_simulate import BARE, CLOUD, POPULATION, Machine

BINS = 12
NOISE = NoiseModel(0.45, 0.003)


def trials(world, seeds, seconds):
    """Return binned series and true levels of arms that warm up from cold."""
    series, truth = [], []
    for seed in seeds:
        arms = POPULATION.arms(seed, 1)
        logs = Machine(world, arms, seed).begin(Trial(0, "a01", "w", 0, 0)).upto(seconds)
        series.append(logs.reshape(-1, 10).mean(axis=1))
        truth.append(arms["a01"].effect)
    return series, np.array(truth)


def noise_covariance(noise, bins):
    """Return the covariance of a stationary first-order autoregression."""
    apart = np.abs(np.subtract.outer(np.arange(bins), np.arange(bins)))
    return noise.variance / (1 - noise.rho**2) * noise.rho**apart


def test_one_model_is_the_normal_linear_one():
    chance = np.random.default_rng(3)
    series = np.array([chance.normal(0.0, 0.1, BINS)])
    model = int(np.flatnonzero(warmup_curves().free == 1)[7])
    only = np.full(len(warmup_curves().free), -np.inf)
    only[model] = 0.0
    prior = Prior(0.5, 0.25, only)
    found = fit(series, NOISE, prior)
    columns = warmup_curves().columns[model, :BINS]
    spread = np.diag(1 / prior.precisions[model])
    covariance = columns @ spread @ columns.T + noise_covariance(NOISE, BINS)
    mean = columns @ prior.means[model]
    gain = spread @ columns.T @ np.linalg.inv(covariance)
    wanted = prior.means[model] + gain @ (series[0] - mean)
    left = spread - gain @ columns @ spread
    assert found.factors[0, model] == pytest.approx(wanted, abs=1e-6)
    assert found.variance[0] == pytest.approx(left[0, 0], rel=1e-6)
    assert found.log_evidence[0] == pytest.approx(
        multivariate_normal.logpdf(series[0], mean, covariance), abs=1e-6
    )


def test_the_average_weighs_models_by_their_evidence():
    chance = np.random.default_rng(4)
    series = np.array([0.1 - 0.5 * np.exp(-np.arange(30) / 4) + chance.normal(0.0, 0.03, 30)])
    found = fit(series, NOISE, Prior())
    assert found.weight.sum() == pytest.approx(1.0)
    assert found.level[0] == pytest.approx(found.weight[0] @ found.factors[0, :, 0])
    assert found.level[0] == pytest.approx(0.1, abs=0.05)
    assert found.weight[0, warmup_curves().free == 0].sum() < 1e-3


def test_a_step_that_has_not_been_seen_is_not_believed():
    found = fit(np.zeros((1, 5)), NOISE, Prior())
    assert found.weight[0, warmup_curves().seen > 5].max() == 0.0


@pytest.mark.statistics
@pytest.mark.parametrize("seconds", [120, 300])
def test_intervals_of_levels_cover_at_their_nominal_rate(seconds):
    series, _ = trials(CLOUD, range(60), 300)
    learned = learn(series)
    fresh, truth = trials(BARE, range(1000, 1400), seconds)
    found = fit(np.array(fresh), learned.noise, learned.prior)
    run = 0.015  # what a start of the simulated server differs from the next
    z = (found.level - truth) / np.sqrt(found.variance + run**2 + 0.005**2)
    assert 0.65 < z.std() < 1.15
    assert np.mean(np.abs(z) < 1.96) > 0.92


def test_noise_and_warm_ups_are_learned():
    series, _ = trials(BARE, range(80), 300)
    learned = learn(series)
    assert learned.prior.missing == pytest.approx(-np.log(0.6), abs=0.05)
    assert learned.noise.variance == pytest.approx(0.0026, rel=0.3)
    assert learn([]) == learn([np.zeros(2)])


def test_the_same_trials_teach_the_same_in_any_order():
    series, _ = trials(BARE, range(12), 100)
    one, other = learn(series), learn(series[::-1])
    assert one.prior.missing == pytest.approx(other.prior.missing, rel=1e-9)
