"""Levels beside drift: the banded solution against the dense one, and known truth."""

from dataclasses import replace

import numpy as np
import pytest

from mydyno.stats.drift import TAU_S, Trials, levels, one_hot


def campaign(seed, *, drift, noise=0.025, treatments=5, blocks=16, apart_s=400.0):
    """Return trials in randomised blocks on a host that drifts, and the true levels."""
    chance = np.random.default_rng(seed)
    truth = chance.normal(0.0, 0.1, treatments)
    order = np.concatenate([chance.permutation(treatments) for _ in range(blocks)])
    at_s = np.arange(len(order)) * apart_s
    apart = np.abs(np.subtract.outer(at_s, at_s))
    weather = chance.multivariate_normal(np.zeros(len(order)), drift**2 * np.exp(-apart / TAU_S))
    level = truth[order] + weather + chance.normal(0.0, noise, len(order))
    return Trials(one_hot(order), at_s, level, np.ones(len(level))), truth


def dense(trials, found):
    """Return levels and covariance by the textbook."""
    apart = np.abs(np.subtract.outer(trials.at_s, trials.at_s))
    covariance = found.drift_sd**2 * np.exp(-apart / TAU_S)
    covariance += np.diag(found.noise_sd**2 * trials.weight)
    design = trials.design
    inverse = np.linalg.inv(covariance)
    spread = np.linalg.inv(design.T @ inverse @ design)
    return spread @ design.T @ inverse @ trials.level, spread


@pytest.mark.parametrize("drift", [0.0, 0.05])
def test_it_is_generalised_least_squares(drift):
    trials, _ = campaign(1, drift=drift)
    weights = 1 + trials.design.argmax(axis=1) / 3
    weighted = replace(trials, weight=weights)
    for one in (trials, weighted):
        found = levels(one)
        level, spread = dense(one, found)
        assert found.level == pytest.approx(level, abs=1e-9)
        assert found.covariance == pytest.approx(spread, abs=1e-9)


@pytest.mark.statistics
def test_intervals_of_contrasts_cover_at_their_nominal_rate():
    z = []
    for seed in range(200):
        trials, truth = campaign(seed, drift=0.04)
        found = levels(trials)
        for treatment in range(1, 5):
            ratio, se = found.difference(treatment, 0)
            z.append((ratio - truth[treatment] + truth[0]) / se)
    assert np.std(z) == pytest.approx(1.0, abs=0.12)


def test_a_drift_is_found_where_there_is_one():
    still = [levels(campaign(s, drift=0.0)[0]).drift_sd for s in range(30)]
    moved = [levels(campaign(s, drift=0.05)[0]).drift_sd for s in range(30)]
    assert np.median(still) <= 0.005
    assert np.median(moved) >= 0.03


@pytest.mark.statistics
def test_few_trials_average_over_parameters_that_they_do_not_determine():
    inside = []
    for seed in range(150):
        trials, truth = campaign(seed, drift=0.04, blocks=4)
        found = levels(trials)
        for treatment in range(1, 5):
            contrast = found.contrast(treatment, 0)
            error = contrast.log_ratio - truth[treatment] + truth[0]
            inside.append(abs(error) < contrast.critical(0.05) * contrast.se)
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)
