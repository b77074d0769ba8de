"""Response surface over the cells of a full factorial: main effects, pairs, and cell effects."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from mydyno.stats.drift import LoadSeries
from mydyno.stats.sequential import learn_from, steady_levels, training_size
from mydyno.stats.steady import Learned

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
    sizes: Sequence[float]
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


def surface(
    grid: CellGrid, runs: TrialLevels, block_sd: float, sizes: Sequence[float] | None = None
) -> Surface:
    """Return the posterior under these sizes of effects, or the most likely ones.

    Rasmussen and Williams, 2.2.
    """
    sums = _sums(len(grid.cells), runs, block_sd)
    some = [sizes] if sizes else product(_MAINS, _PAIRS, _OWN)
    return max((_posterior(grid, sums, s) for s in some), key=lambda one: one.log_evidence)


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


def _posterior(grid: CellGrid, sums: _Sums, sizes: Sequence[float]) -> Surface:
    prior = grid.covariance(sizes)
    n = len(prior)
    inner = np.eye(n) + prior @ sums.information
    solved = np.linalg.solve(inner, np.column_stack([prior, prior @ sums.score]))
    covariance, mean = solved[:, :n], np.asarray(solved[:, n], dtype=np.float64)
    log_det = float(np.linalg.slogdet(inner)[1]) + sums.log_det
    evidence = -(sums.squares - float(sums.score @ mean) + log_det) / 2
    return Surface(mean, np.asarray(covariance + covariance.T) / 2, sizes, evidence)


_BLOCK = 6  # trials per block: the host hardly drifts within one
_EVERY = 6  # trials after which the sizes of effects are estimated again
_FIRST = 12  # trials in random order, before cells are chosen
_DRAWS = 400
_RUN_SDS = (0.01, 0.02, 0.04)  # standard deviation between server starts, as logs
_BLOCK_SDS = (0.005, 0.03)
_TRIAL_VARIANCE = 0.03**2  # usual variance of a trial's level


class Explorer:
    """Chooses cells; the choice depends on the given trials only, not on earlier calls.

    `names` are the treatments' names, one for each cell; `seed` is that of all random draws.
    Intermediate results are cached by the number of trials, so that repeated calls are cheap.
    """

    def __init__(self, grid: CellGrid, names: Sequence[str], seed: int = 1) -> None:
        self.grid, self.names, self.seed = grid, names, seed
        self._learned: dict[int, Learned] = {}
        self._likely: dict[int, tuple[Surface, float, float]] = {}

    def surface(self, trials: Sequence[LoadSeries]) -> Surface:
        """Return the posterior of all cells.

        Sizes of effects and spreads are the most likely ones after the last multiple of `_EVERY`.
        """
        count = len(trials) - len(trials) % _EVERY or len(trials)
        if count not in self._likely:
            runs = self._runs(trials[:count])
            tried = [
                (surface(self.grid, _with(runs, run_sd), block_sd), run_sd, block_sd)
                for run_sd, block_sd in product(_RUN_SDS, _BLOCK_SDS)
            ]
            self._likely[count] = max(tried, key=lambda one: one[0].log_evidence)
        found, run_sd, block_sd = self._likely[count]
        return surface(self.grid, _with(self._runs(trials), run_sd), block_sd, found.sizes)

    def next_cell(self, trials: Sequence[LoadSeries], lost: Sequence[str] = ()) -> str:
        """Return the treatment to measure next; `lost` are those without a result.

        A lost treatment is not measured again; at least one other must be left.  After the first
        trials in random order: the cell whose trial reduces most the variance of the difference
        between the leader and a rival, drawn with its probability of being the best (top-two
        Thompson sampling, Russo, 2020).
        """
        names, seed = self.names, self.seed
        tried = len(trials) + len(lost)
        if tried < _FIRST or len(trials) < _EVERY:
            order = np.random.default_rng(seed).permutation(len(names))
            ahead = [names[int(order[(tried + i) % len(order)])] for i in range(len(order))]
            return next(name for name in ahead if name not in lost)
        found = self.surface(trials)
        out = [i for i, name in enumerate(names) if name in lost]
        mean = found.mean.copy()
        mean[out] = -np.inf
        leader = int(np.argmax(mean))
        chance = np.random.default_rng((seed, len(trials)))
        chances = found.best(chance.normal(size=(_DRAWS, len(found.mean))))
        chances[[leader, *out]] = 0.0
        if chances.sum() == 0:
            return names[leader]
        rival = int(chance.choice(len(chances), p=chances / chances.sum()))
        return names[found.next_cell(leader, rival, _TRIAL_VARIANCE, out)]

    def finalists(
        self, trials: Sequence[LoadSeries], most: int = 3, lost: Sequence[str] = ()
    ) -> list[str]:
        """Return the treatments most likely to be the best, the likeliest first, none of `lost`."""
        if not trials:
            return []
        found = self.surface(trials)
        chance = np.random.default_rng((self.seed, len(trials), 1))
        chances = found.best(chance.normal(size=(4 * _DRAWS, len(found.mean))))
        order = np.lexsort((-found.mean, -chances))
        ranked = [self.names[int(i)] for i in order]
        return [name for name in ranked if name not in lost][:most]

    def _runs(self, trials: Sequence[LoadSeries]) -> TrialLevels:
        count = training_size(len(trials))
        if count not in self._learned:
            self._learned[count] = learn_from([t.series for t in trials])
        steady = steady_levels(trials, self._learned[count])
        number = {name: i for i, name in enumerate(self.names)}
        cell = np.array([number[t.treatment] for t in trials])
        return TrialLevels(cell, steady.level, steady.variance, np.arange(len(trials)) // _BLOCK)


def _with(runs: TrialLevels, run_sd: float) -> TrialLevels:
    return replace(runs, variance=runs.variance + run_sd**2)
