"""Designs: the next trial as a pure function of the finished ones."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from mydyno.model import Cost, Interval, Outcome, Reset, Settings, Trial, Window
from mydyno.stack.layers import cost_of


class Stop(Protocol):
    """Ends a trial when its measured window is complete."""

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the measured window once it is complete, else None."""
        ...


class Stops(Protocol):
    """Gives each trial its stop rule, as a function of the earlier trials only."""

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule of the trial that follows `history`."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """A warm-up and a window of fixed lengths, in seconds."""

    warmup_s: float
    window_s: float

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the same rule for all trials."""
        del trial, history
        return self

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the window once the last interval has reached its end."""
        window = Window(self.warmup_s, self.warmup_s + self.window_s)
        return window if intervals and window.reached(intervals[-1].t_s) else None


def seed_of(first: int, number: int, block: int, reset: Reset) -> int:
    """Return the seed of a campaign's trial `number` in `block`; `first` is the campaign's.

    Trials of a block share a seed, so that its treatments have the same load.  Where the server
    keeps running, each trial has its own: with the same rows, later trials would find them cached.
    """
    return first + (number if reset is Reset.NONE else block)


Cell = tuple[str, str]  # workload, treatment


def plots(treatments: Mapping[str, Settings], *, one_device: bool) -> Mapping[str, str]:
    """Return the whole plot of each treatment: its levels of the hard-to-change factors.

    These cost a reboot or, with `one_device`, which holds one data set at a time, another data set.
    A lab holds all data sets at once.
    """
    hard_to_change = {Cost.REBOOT, Cost.REFORMAT} if one_device else {Cost.REBOOT}
    return {
        name: repr(sorted((k, v) for k, v in settings.items() if cost_of(k) in hard_to_change))
        for name, settings in treatments.items()
    }


def grouped(order: Sequence[Cell], of: Mapping[str, str], chance: random.Random) -> list[Cell]:
    """Return a block's trials grouped by whole plot, the plots in random order.

    The order is drawn again for every block, so that the random effect of a reboot differs between
    a treatment's trials and is part of their variance (Yates, 1935, for the design).
    """
    found = list(dict.fromkeys(of.get(treatment, "") for _, treatment in order))
    chance.shuffle(found)
    return sorted(order, key=lambda cell: found.index(of.get(cell[1], "")))


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
    trials of a block meet the same load (`mydyno.campaign.designs`).
    `blocks` or `budget_s` ends it, whichever comes first; the budget is checked between blocks,
    and no block is begun that would exceed it at the mean cost of earlier blocks.  Treatments of
    one whole plot (`mydyno.campaign.designs`) stay together.
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


_FIRST = 0.1  # the first share of it is not measured


@dataclass(frozen=True, slots=True)
class Soak:
    """One long trial of the winner under the first load, if there is a winner."""

    seconds: float
    winner: Callable[[Sequence[Outcome]], str | None] = field(repr=False)

    @property
    def stop(self) -> Fixed:
        """Return the stop rule of its trial."""
        return Fixed(_FIRST * self.seconds, (1 - _FIRST) * self.seconds)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the soak trial that follows a design's last trial, or None after it."""
        if not history or any(o.trial.soak for o in history):
            return None
        winner, last = self.winner(history), history[-1].trial
        if winner is None:
            return None
        workload, seed = history[0].trial.workload, history[0].trial.seed
        return replace(
            last, id=last.id + 1, treatment=winner, workload=workload, block=last.block + 1,
            seed=seed, soak=True,
        )  # fmt: skip
