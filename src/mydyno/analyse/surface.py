"""Response surface over the cells of a full factorial: main effects, pairs, and cell effects."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]

_MAINS = (0.03, 0.06, 0.1, 0.2)  # standard deviations of a level's effect, as logs
_PAIRS = (0.003, 0.015, 0.04)
_OWN = (0.002, 0.01)
_MEAN = 1.0  # of the overall mean: a vague prior


@dataclass(frozen=True)
class CellGrid:
    """Cells as rows of levels (cells, factors)."""

    cells: Ints

    @cached_property
    def kernels(self) -> tuple[Array, Array, Array]:
        """Return which cells share a level, a pair of levels, everything (cells, cells) each."""
        same = [np.equal.outer(f, f).astype(np.float64) for f in self.cells.T]
        pairs = [same[i] * same[j] for i, j in combinations(range(len(same)), 2)]
        n = len(self.cells)
        return sum(same, np.zeros((n, n))), sum(pairs, np.zeros((n, n))), np.eye(n)

    def covariance(self, sizes: Sequence[float]) -> Array:
        """Return the prior covariance of the cells for standard deviations of these three."""
        parts = zip(sizes, self.kernels, strict=True)
        return np.asarray(_MEAN + sum(size**2 * kernel for size, kernel in parts))


@dataclass(frozen=True, slots=True)
class TrialLevels:
    """Finished trials: cell, level (log), variance, block (the host hardly drifts in it)."""

    cell: Ints
    level: Array
    variance: Array
    block: Ints


@dataclass(frozen=True, slots=True)
class Surface:
    """Posterior of the cells' log levels: mean (cells) and covariance (cells, cells)."""

    mean: Array
    covariance: Array
    sizes: tuple[float, float, float]
    log_evidence: float = 0.0

    def best(self, draws: Array) -> Array:
        """Return the probability of each cell to be the best one; `draws` as `normal` draws."""
        root = np.linalg.cholesky(self.covariance + 1e-10 * np.eye(len(self.mean)))
        winners = np.argmax(self.mean + draws @ root.T, axis=1)
        return np.bincount(winners, minlength=len(self.mean)) / len(draws)

    def next_cell(self, leader: int, rival: int, variance: float, out: Sequence[int] = ()) -> int:
        """Return the cell whose trial most reduces the variance of the difference of two cells.

        Cells in `out` are excluded.  The reduction is that of a rank-one update.
        """
        c = self.covariance
        fall = (c[:, leader] - c[:, rival]) ** 2 / (np.diag(c) + variance)
        fall[list(out)] = -np.inf
        return int(np.argmax(fall))


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sufficient statistics of the cells, with the block levels integrated out."""

    information: Array
    score: Array
    squares: float
    log_det: float


def surface(grid: CellGrid, runs: TrialLevels, block_sd: float) -> Surface:
    """Return the posterior under the most likely sizes of effects (Rasmussen and Williams, 2.2)."""
    sums = _sums(len(grid.cells), runs, block_sd)
    found = [(*_posterior(grid, sums, s), s) for s in product(_MAINS, _PAIRS, _OWN)]
    evidence, mean, covariance, sizes = max(found, key=lambda one: one[0])
    return Surface(mean, covariance, sizes, evidence)


def updated_surface(grid: CellGrid, runs: TrialLevels, block_sd: float, before: Surface) -> Surface:
    """Return the posterior under the sizes of effects of an earlier posterior."""
    sums = _sums(len(grid.cells), runs, block_sd)
    evidence, mean, covariance = _posterior(grid, sums, before.sizes)
    return Surface(mean, covariance, before.sizes, evidence)


def _sums(cells: int, runs: TrialLevels, block_sd: float) -> _Sums:
    weight = 1 / runs.variance
    blocks = int(runs.block.max()) + 1
    held = np.zeros((blocks, cells))
    np.add.at(held, (runs.block, runs.cell), weight)
    score = np.bincount(runs.cell, weight * runs.level, cells)
    of_block = np.bincount(runs.block, weight * runs.level, blocks)
    total = block_sd**-2 + held.sum(axis=1)
    return _Sums(
        information=np.diag(held.sum(axis=0)) - held.T @ (held / total[:, None]),
        score=score - held.T @ (of_block / total),
        squares=float(weight @ runs.level**2 - (of_block**2 / total).sum()),
        log_det=float(np.log(runs.variance).sum() + np.log(total * block_sd**2).sum()),
    )


def _posterior(grid: CellGrid, sums: _Sums, sizes: Sequence[float]) -> tuple[float, Array, Array]:
    prior = grid.covariance(sizes)
    n = len(prior)
    inner = np.eye(n) + prior @ sums.information
    solved = np.linalg.solve(inner, np.column_stack([prior, prior @ sums.score]))
    covariance, mean = solved[:, :n], np.asarray(solved[:, n], dtype=np.float64)
    log_det = float(np.linalg.slogdet(inner)[1]) + sums.log_det
    evidence = -(sums.squares - float(sums.score @ mean) + log_det) / 2
    return evidence, mean, np.asarray(covariance + covariance.T) / 2
