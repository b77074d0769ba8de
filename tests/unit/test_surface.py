"""The surface of a grid: against dense Gaussian-process regression, and known truth."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from mydyno.stats.surface import CellGrid, TrialLevels, surface

LEVELS = (2, 2, 3, 5)
GRID = CellGrid(np.array(list(product(*map(range, LEVELS)))))
BLOCK_SD = 0.03


def runs(seed, n=40, noise=0.03):
    """Return trials of random cells and the true levels: main effects and one pair."""
    chance = np.random.default_rng(seed)
    mains = [chance.normal(0.0, 0.08, k) for k in LEVELS]
    pair = chance.normal(0.0, 0.03, (3, 5))
    truth = sum(m[GRID.cells[:, f]] for f, m in enumerate(mains))
    truth = truth + pair[GRID.cells[:, 2], GRID.cells[:, 3]]
    cell, block = chance.integers(0, 60, n), np.arange(n) // 6
    level = truth[cell] + chance.normal(0.0, BLOCK_SD, block.max() + 1)[block]
    level += chance.normal(0.0, noise, n)
    return TrialLevels(cell, level, np.full(n, noise**2), block), truth


def dense(some, sizes):
    """Return mean, covariance and log evidence by the textbook."""
    prior = GRID.covariance(sizes)
    pick = np.eye(60)[some.cell]
    noise = np.diag(some.variance) + BLOCK_SD**2 * np.equal.outer(some.block, some.block)
    covariance = pick @ prior @ pick.T + noise
    gain = prior @ pick.T @ np.linalg.inv(covariance)
    evidence = multivariate_normal.logpdf(some.level, np.zeros(len(some.level)), covariance)
    return gain @ some.level, prior - gain @ pick @ prior, evidence


def test_it_is_gaussian_process_regression():
    some, _ = runs(1)
    found = surface(GRID, some, BLOCK_SD)
    mean, covariance, best = dense(some, found.sizes)
    assert found.mean == pytest.approx(mean, abs=1e-6)
    assert found.covariance == pytest.approx(covariance, abs=1e-6)
    for sizes in ((0.03, 0.003, 0.002), (0.2, 0.04, 0.01)):
        assert dense(some, sizes)[2] <= best + 1e-6
    again = surface(GRID, some, BLOCK_SD, found.sizes)
    assert again.mean == pytest.approx(found.mean)


@pytest.mark.statistics
def test_intervals_of_differences_cover_at_their_nominal_rate():
    z = []
    for seed in range(60):
        some, truth = runs(seed)
        found = surface(GRID, some, BLOCK_SD)
        apart = found.mean - found.mean[0] - truth + truth[0]
        c = found.covariance
        z += list((apart / np.sqrt(np.diag(c) + c[0, 0] - 2 * c[0]).clip(1e-9))[1::7])
    assert np.std(z) == pytest.approx(1.0, abs=0.2)


def test_the_best_cell_is_likely_where_it_is_clear():
    some, truth = runs(5, n=200, noise=0.01)
    found = surface(GRID, some, BLOCK_SD)
    chances = found.best(np.random.default_rng(1).normal(size=(500, 60)))
    assert chances.sum() == pytest.approx(1.0)
    assert chances[int(np.argmax(truth))] > 0.5


def test_the_next_cell_reduces_the_uncertainty_most():
    some, _ = runs(6)
    found = surface(GRID, some, BLOCK_SD)
    leader, rival = np.argsort(found.mean)[-2:]

    def uncertainty(cell):
        more = TrialLevels(np.append(some.cell, cell), np.append(some.level, 0.0),
                    np.append(some.variance, 0.03**2), np.append(some.block, 99))  # fmt: skip
        c = surface(GRID, more, 1e-6, found.sizes).covariance
        return c[leader, leader] + c[rival, rival] - 2 * c[leader, rival]

    asked = found.next_cell(int(leader), int(rival), 0.03**2)
    before = surface(GRID, some, 1e-6, found.sizes)
    fresh = before.next_cell(int(leader), int(rival), 0.03**2)
    assert uncertainty(fresh) == pytest.approx(
        min(uncertainty(cell) for cell in range(60)), rel=1e-3
    )
    assert 0 <= asked < 60
