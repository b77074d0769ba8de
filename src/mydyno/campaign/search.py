"""A search: a part of a grid's cells is tried, and its best few are confirmed on fresh trials."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from mydyno.analyse.ends import ended
from mydyno.campaign.race import Cell, Race, Undecided
from mydyno.campaign.seeds import seed_of
from mydyno.model import Outcome, Reset, Status, Trial

if TYPE_CHECKING:  # numpy and scipy take half a second that most commands never need
    from mydyno.analyse.explore import Explorer
    from mydyno.analyse.sequential import LoadSeries

CONFIRMING = 1  # the first block whose trials may prove something; those before only look about
HOURS = 0.1  # for each cell, without a budget: a tenth of an hour's run of every one
_FEWEST = 12
_LOOKING = 0.6  # of the budget; the rest is for the proof
_SHARE = 0.55  # of the cells that it should be good for
_FINALISTS = 2
_BLOCKS = 12  # that finalists get at the most


@dataclass(frozen=True)
class Search:
    """Tries cells of a grid where the best may be, then races the most likely ones.

    `cells` holds each treatment's levels, one for each factor.  A cell whose trial fails or stalls
    is not tried again and is no finalist; it is in the comparison, with its count.  What the search
    saw is no proof of what it found, for the best of many is the luckiest: finalists are judged by
    what comes after.
    """

    cells: Mapping[str, tuple[int, ...]]
    baseline: str
    workload: str
    response: str
    blocks: int | None
    budget_s: float
    seed: int
    undecided: Undecided = field(repr=False)
    reset: Reset = Reset.DATASET
    lower: Collection[str] = field(default=(), repr=False)
    # Functions of the trials so far, kept because asking again is not for nothing.
    _explorers: list["Explorer"] = field(default_factory=list, repr=False, compare=False)
    _finals: dict[int, Race] = field(default_factory=dict, repr=False, compare=False)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next cell to try, or the next trial of the finalists' race."""
        looked = self.looked(history)
        if looked is None:
            cell = self.explorer.next_cell(self._load_series(history), self._lost(history))
            seed = seed_of(self.seed, len(history), 0, self.reset)
            return Trial(len(history), cell, self.workload, 0, seed, self.reset)
        trial = self._final(history[:looked]).next(history[looked:])
        if trial is None:
            return None
        return replace(trial, id=len(history), block=trial.block + CONFIRMING)

    @staticmethod
    def most_s(cells: int, budget_s: float) -> float:
        """Return the seconds that a trial may take if enough cells are to be tried."""
        return _LOOKING * budget_s / (_SHARE * cells)

    def looked(self, history: Sequence[Outcome]) -> int | None:
        """Return how many of the trials looked about, or None while there is more to look at."""
        spent_s = 0.0
        for trials in range(len(history) + 1):
            if self._enough(trials, spent_s) or self._all_lost(history[:trials]):
                return trials
            if trials < len(history):
                spent_s += history[trials].machine_time_s
        return None

    @property
    def explorer(self) -> "Explorer":
        """Return what knows the grid."""
        if not self._explorers:
            import numpy as np  # noqa: PLC0415

            from mydyno.analyse.explore import Explorer, SearchSpace  # noqa: PLC0415
            from mydyno.analyse.surface import CellGrid  # noqa: PLC0415

            grid = CellGrid(np.array(list(self.cells.values())))
            self._explorers.append(Explorer(SearchSpace(grid, list(self.cells), self.seed)))
        return self._explorers[0]

    def _enough(self, trials: int, spent_s: float) -> bool:
        if trials < min(_FEWEST, len(self.cells)):
            return False
        late = spent_s * (1 + 1 / trials) > _LOOKING * self.budget_s
        return late or trials >= len(self.cells)

    def _final(self, looked: Sequence[Outcome]) -> Race:
        if len(looked) not in self._finals:
            tried = self._load_series(looked)
            found = self.explorer.finalists(tried, _FINALISTS, self._lost(looked))
            left_s = self.budget_s - sum(o.machine_time_s for o in looked)
            self._finals[len(looked)] = Race(
                treatments=(self.baseline, *(name for name in found if name != self.baseline)),
                baseline=self.baseline,
                workloads=(self.workload,),
                blocks=self.blocks or _BLOCKS,
                budget_s=left_s,
                seed=self.seed,
                undecided=partial(self._open, looked),
                reset=self.reset,
            )
        return self._finals[len(looked)]

    def _open(self, looked: Sequence[Outcome], after: Sequence[Outcome]) -> Collection[Cell]:
        return self.undecided([*looked, *after])

    def _load_series(self, history: Sequence[Outcome]) -> list["LoadSeries"]:
        from mydyno.analyse.sequential import load_series  # noqa: PLC0415

        return load_series(self._ended(history), self.workload, self.response, self.lower)

    def _ended(self, history: Sequence[Outcome]) -> list[Outcome]:
        return ended(history, {self.workload: self.response}, self.lower)

    def _lost(self, history: Sequence[Outcome]) -> list[str]:
        """Return the cell of each trial that failed, stalled or gave no result."""
        return [o.trial.treatment for o in self._ended(history) if o.status is not Status.OK]

    def _all_lost(self, history: Sequence[Outcome]) -> bool:
        return len(history) >= len(self.cells) and self.cells.keys() <= {*self._lost(history)}
