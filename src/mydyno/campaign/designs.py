"""Designs: the next trial as a pure function of the finished ones."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mydyno.campaign.plots import grouped
from mydyno.campaign.seeds import seed_of
from mydyno.model import Outcome, Reset, Trial


class Design(Protocol):
    """Decides the next trial from those already finished, and from nothing else."""

    @property
    def blocks(self) -> int | None:
        """Return the largest number of blocks, or None if it is not fixed."""
        ...

    @property
    def budget_s(self) -> float | None:
        """Return the machine time in seconds after which it ends, if there is one."""
        ...

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the trial to run after `history`, or None when the design is complete."""
        ...


@dataclass(frozen=True, slots=True)
class Blocks:
    """Randomised complete blocks: in each block every treatment once under every workload.

    Treatments under one workload follow each other, in random order, so that what is compared
    is near in time (randomised multiple interleaved trials: Abedi and Brecht, 2017).  All
    trials of a block meet the same load (`mydyno.campaign.seeds`).
    `blocks` or `budget_s` ends it, whichever comes first; the budget is checked between blocks,
    and no block is begun that would exceed it at the mean cost of earlier blocks.  Treatments of
    one whole plot (`mydyno.campaign.plots`) stay together.
    """

    treatments: tuple[str, ...]
    workloads: tuple[str, ...]
    blocks: int | None
    budget_s: float | None
    seed: int
    reset: Reset = Reset.DATASET
    plots: Mapping[str, str] = field(default_factory=dict, repr=False)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next trial of the present block, or the first of the next one."""
        block, place = divmod(len(history), self.size)
        if place == 0 and self._over(block, history):
            return None
        workload, treatment = self._order(block)[place]
        seed = seed_of(self.seed, len(history), block, self.reset)
        return Trial(len(history), treatment, workload, block, seed, self.reset)

    @property
    def size(self) -> int:
        """Return the number of trials in a block."""
        return len(self.treatments) * len(self.workloads)

    def _over(self, block: int, history: Sequence[Outcome]) -> bool:
        if self.blocks is not None and block >= self.blocks:
            return True
        if self.budget_s is None or block == 0:
            return False
        spent_s = sum(outcome.machine_time_s for outcome in history)
        return spent_s + spent_s / block > self.budget_s

    def _order(self, block: int) -> list[tuple[str, str]]:
        chance = random.Random(f"{self.seed}/{block}")
        order = [
            (workload, treatment)
            for workload in chance.sample(self.workloads, len(self.workloads))
            for treatment in chance.sample(self.treatments, len(self.treatments))
        ]
        return grouped(order, self.plots, chance)
