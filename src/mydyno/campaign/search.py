"""A search: some cells of a grid are tried, and the best few are confirmed in new trials."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from mydyno.campaign.designs import (
    DesignKind,
    PlanInput,
    Stops,
    exhausted,
    seed_of,
    spent,
    trial_lengths,
)
from mydyno.campaign.race import Race, Undecided
from mydyno.model import Outcome, Reset, SpecError, Trial, TrialStatus
from mydyno.stats import Estimator, Goal, Method, Rule, undecided
from mydyno.stats.estimates import ended

if TYPE_CHECKING:
    from mydyno.stats.drift import LoadSeries
    from mydyno.stats.surface import Explorer


CONFIRMING = 1  # the first block that counts for the verdict; earlier ones only explore
HOURS = 0.1  # default budget for each cell
_FEWEST = 12
_EXPLORING = 0.6  # share of the budget; the rest confirms
_SHARE = 0.55  # of the cells that exploring should cover
_FINALISTS = 2
_BLOCKS = 12  # the most that finalists get


@dataclass(frozen=True)
class Search:
    """Tries cells of a grid where the best may be, then races the most likely ones.

    `cells` holds each treatment's levels, one for each factor.  A cell whose trial fails or stalls
    is not tried again and is no finalist; it is in the comparison, with its count.  Trials that
    explore do not count for the verdict, as the best of many is partly chance (selection bias):
    finalists are compared in later trials only.
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
    total = None  # the budget decides how many cells are tried

    @cached_property
    def _finals(self) -> dict[int, Race]:
        """A cache: the race of the finalists after so many exploring trials."""
        return {}

    size = None  # what it shows is not known before

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next cell to try, or the next trial of the finalists' race."""
        if exhausted(self.budget_s, history):
            return None
        explored = self.explored(history)
        if explored is None:
            cell = self.explorer.next_cell(self._load_series(history), self._lost(history))
            seed = seed_of(self.seed, len(history), 0, self.reset)
            return Trial(len(history), cell, self.workload, 0, seed, self.reset)
        trial = self._final(history[:explored]).next(history[explored:])
        if trial is None:
            return None
        return replace(trial, id=len(history), block=trial.block + CONFIRMING)

    @staticmethod
    def most_s(cells: int, budget_s: float) -> float:
        """Return the longest trial, in seconds, that lets enough cells be tried."""
        return _EXPLORING * budget_s / (_SHARE * cells)

    def explored(self, history: Sequence[Outcome]) -> int | None:
        """Return the number of exploring trials, or None while exploring goes on."""
        spent_s = 0.0
        for trials in range(len(history) + 1):
            if self._enough(trials, spent_s) or self._all_lost(history[:trials]):
                return trials
            if trials < len(history):
                spent_s += history[trials].machine_time_s
        return None

    @cached_property
    def explorer(self) -> "Explorer":
        """The model of the grid."""
        import numpy as np  # noqa: PLC0415

        from mydyno.stats.surface import CellGrid, Explorer  # noqa: PLC0415

        grid = CellGrid(np.array(list(self.cells.values())))
        return Explorer(grid, list(self.cells), self.seed)

    def _enough(self, trials: int, spent_s: float) -> bool:
        if trials < min(_FEWEST, len(self.cells)):
            return False
        late = spent_s * (1 + 1 / trials) > _EXPLORING * self.budget_s
        return late or trials >= len(self.cells)

    def _final(self, explored: Sequence[Outcome]) -> Race:
        if len(explored) not in self._finals:
            tried = self._load_series(explored)
            found = self.explorer.finalists(tried, _FINALISTS, self._lost(explored))
            left_s = self.budget_s - spent(explored)
            self._finals[len(explored)] = Race(
                treatments=(self.baseline, *(name for name in found if name != self.baseline)),
                baseline=self.baseline,
                workloads=(self.workload,),
                blocks=self.blocks or _BLOCKS,
                budget_s=left_s,
                seed=self.seed,
                undecided=lambda after: self.undecided([*explored, *after]),
                reset=self.reset,
            )
        return self._finals[len(explored)]

    def _load_series(self, history: Sequence[Outcome]) -> list["LoadSeries"]:
        from mydyno.stats.sequential import load_series  # noqa: PLC0415

        return load_series(self._ended(history), self.workload, self.response, self.lower)

    def _ended(self, history: Sequence[Outcome]) -> list[Outcome]:
        return ended(history, {self.workload: self.response}, self.lower)

    def _lost(self, history: Sequence[Outcome]) -> list[str]:
        """Return the cell of each trial that failed, stalled or gave no result."""
        return [o.trial.treatment for o in self._ended(history) if o.status is not TrialStatus.OK]

    def _all_lost(self, history: Sequence[Outcome]) -> bool:
        return len(history) >= len(self.cells) and self.cells.keys() <= {*self._lost(history)}


def _budget_s(inputs: PlanInput) -> float:
    return inputs.budget_s or HOURS * 3600 * len(inputs.cells)


def _refuse(inputs: PlanInput) -> None:
    """Raise `SpecError` for a spec without a grid, or with several workloads."""
    if not inputs.spec.factors:
        raise SpecError(f"{inputs.place}: design.kind: a search needs [factors]; add them")
    if len(inputs.workloads) > 1:
        raise SpecError(
            f"{inputs.place}: design.kind: a search takes one workload, not "
            f"{len(inputs.workloads)}; keep one, or use a race"
        )


def _search(inputs: PlanInput, rule: Rule) -> Search:
    (workload,) = inputs.workloads
    return Search(
        cells=inputs.cells,
        baseline=rule.baseline,
        workload=workload,
        response=rule.responses[workload],
        blocks=inputs.blocks,
        budget_s=_budget_s(inputs),
        seed=inputs.spec.design.seed,
        undecided=undecided(rule, tuple(inputs.treatments)),
        reset=inputs.reset,
        lower=inputs.lower,
    )


def _lengths(inputs: PlanInput) -> Stops:
    _refuse(inputs)
    return trial_lengths(inputs, Search.most_s(len(inputs.cells), _budget_s(inputs)))


SEARCH = DesignKind(
    "a search: the cells that are likely to be best are tried, then the two best are compared with "
    "the baseline in new trials",
    _search,
    _lengths,
    Method(Estimator.WINDOWS, Goal.BEST, proving_from=CONFIRMING),
)
