"""Sequential search of a grid: which cell to measure next, and which ones to confirm."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from mydyno.analyse.sequential import LoadSeries, learn_from, steady_levels, training_size
from mydyno.analyse.steady import Learned
from mydyno.analyse.surface import CellGrid, Surface, TrialLevels, surface, updated_surface

_BLOCK = 6  # trials per block: the host hardly drifts within one
_EVERY = 6  # trials after which the sizes of effects are estimated again
_FIRST = 12  # trials in random order, before cells are chosen
_DRAWS = 400
_RUN_SDS = (0.01, 0.02, 0.04)  # standard deviation between server starts, as logs
_BLOCK_SDS = (0.005, 0.03)
_TRIAL_VARIANCE = 0.03**2  # usual variance of a trial's level


@dataclass(frozen=True, slots=True)
class SearchSpace:
    """A grid with its treatments' names, one for each cell, and the seed of all random draws."""

    grid: CellGrid
    names: Sequence[str]
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Spreads:
    """Standard deviations of starts and of blocks, as logs."""

    run: float
    block: float


class Explorer:
    """Chooses cells; the choice depends on the given trials only, not on earlier calls.

    Intermediate results are cached by the number of trials, so that repeated calls are cheap.
    """

    def __init__(self, space: SearchSpace) -> None:
        self.space = space
        self._learned: dict[int, Learned] = {}
        self._likely: dict[int, tuple[Surface, Spreads]] = {}

    def surface(self, trials: Sequence[LoadSeries]) -> Surface:
        """Return the posterior of all cells.

        Sizes of effects and spreads are the most likely ones after the last multiple of `_EVERY`.
        """
        count = len(trials) - len(trials) % _EVERY or len(trials)
        if count not in self._likely:
            runs = self._runs(trials[:count])
            tried = [self._tried(runs, Spreads(r, b)) for r, b in product(_RUN_SDS, _BLOCK_SDS)]
            self._likely[count] = max(tried, key=lambda one: one[0].log_evidence)
        found, spreads = self._likely[count]
        runs = _with(self._runs(trials), spreads)
        return updated_surface(self.space.grid, runs, spreads.block, found)

    def next_cell(self, trials: Sequence[LoadSeries], lost: Sequence[str] = ()) -> str:
        """Return the treatment to measure next; `lost` are those without a result.

        A lost treatment is not measured again; at least one other must be left.  After the first
        trials in random order: the cell whose trial reduces most the variance of the difference
        between the leader and a rival, drawn with its probability of being the best (top-two
        Thompson sampling, Russo, 2020).
        """
        names, seed = self.space.names, self.space.seed
        tried = len(trials) + len(lost)
        if tried < _FIRST or len(trials) < _EVERY:
            order = np.random.default_rng(seed).permutation(len(names))
            ahead = [names[int(order[(tried + i) % len(order)])] for i in range(len(order))]
            return next(name for name in ahead if name not in lost)
        found = self.surface(trials)
        out = self._places(lost)
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
        chance = np.random.default_rng((self.space.seed, len(trials), 1))
        chances = found.best(chance.normal(size=(4 * _DRAWS, len(found.mean))))
        order = np.lexsort((-found.mean, -chances))
        ranked = [self.space.names[int(i)] for i in order]
        return [name for name in ranked if name not in lost][:most]

    def _places(self, names: Sequence[str]) -> list[int]:
        return [i for i, name in enumerate(self.space.names) if name in names]

    def _runs(self, trials: Sequence[LoadSeries]) -> TrialLevels:
        count = training_size(len(trials))
        if count not in self._learned:
            self._learned[count] = learn_from([t.series for t in trials])
        steady = steady_levels(trials, self._learned[count])
        number = {name: i for i, name in enumerate(self.space.names)}
        cell = np.array([number[t.treatment] for t in trials])
        return TrialLevels(cell, steady.level, steady.variance, np.arange(len(trials)) // _BLOCK)

    def _tried(self, runs: TrialLevels, spreads: Spreads) -> tuple[Surface, Spreads]:
        return surface(self.space.grid, _with(runs, spreads), spreads.block), spreads


def _with(runs: TrialLevels, spreads: Spreads) -> TrialLevels:
    return TrialLevels(runs.cell, runs.level, runs.variance + spreads.run**2, runs.block)
