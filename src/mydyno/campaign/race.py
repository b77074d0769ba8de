"""A race: randomised blocks of what is still undecided; also of a grid, a fraction, a ladder."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from math import inf, isqrt

from mydyno.campaign.blocks import Blocks, blocks_of, present, repeating
from mydyno.campaign.designs import (
    Cell,
    DesignKind,
    Grid,
    PlanInput,
    exceeds,
    exhausted,
    grouped,
    seed_of,
    spent,
    trial_lengths,
)
from mydyno.campaign.spec import Spec
from mydyno.campaign.treatments import less_of, numbered, rungs_of, spare_of
from mydyno.model import Outcome, Reset, Settings, SpecError, Trial
from mydyno.stack.protocol import split
from mydyno.stats import Method, Rule, compare, undecided
from mydyno.stats.effects import Size

Undecided = Callable[[Sequence[Outcome]], Collection[Cell]]
"""The cells for which another block could still change the decision."""

_FEWEST = 2  # blocks before any decision: one has no variance
_BLOCKS = 8  # without `blocks` or `budget`: most treatments leave before
_CHECKS = 3  # trials of the baseline that come first: they show the noise of this host
_CHECKED_S = 3600.0  # a smaller budget has no room for them


@dataclass(frozen=True)
class Race:
    """Blocks as in `Blocks`, without the treatments that are decided already.

    In each block the baseline is measured about as often as the square root of the number of
    treatments (Dunnett, 1955), spread over the block.  The first `checks` trials are of the
    baseline alone: they show the noise of this host.  `blocks` or `budget_s` ends it;
    the budget is checked between blocks.
    Treatments of one whole plot (`mydyno.campaign.designs`) stay together, the baseline in its own.
    """

    treatments: tuple[str, ...]
    baseline: str
    workloads: tuple[str, ...]
    blocks: int | None
    budget_s: float | None
    seed: int
    undecided: Undecided = field(repr=False)
    checks: int = 0
    reset: Reset = Reset.DATASET
    plots: Mapping[str, str] = field(default_factory=dict, repr=False)
    total = None  # treatments leave a race early

    @cached_property
    def _orders(self) -> dict[int, Sequence[Cell]]:
        """A cache: the order of the block that begins after so many trials."""
        return {}

    def often(self, running: int) -> int:
        """Return how many times a block of so many other treatments holds the baseline."""
        return max(1, isqrt(running))

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next trial of the present block, or the first of the next one."""
        block, begun, order = present(history, self._order)
        if not order or exhausted(self.budget_s, history):
            return None
        workload, treatment = order[len(history) - begun]
        seed = seed_of(self.seed, len(history), block, self.reset)
        return Trial(len(history), treatment, workload, block, seed, self.reset)

    @property
    def size(self) -> Size:
        """Return what a forecast needs; a budget may end the race before its blocks do."""
        arms = len(self.treatments) - 1
        baselines = self.often(arms)
        return Size(arms, len(self.workloads), self.blocks, self.checks, baselines, early=True)

    def ended(self, history: Sequence[Outcome]) -> int | None:
        """Return after how many of these trials the race was over, or None if it goes on."""
        sums_s = accumulate((o.machine_time_s for o in history), initial=0.0)
        budget_s = inf if self.budget_s is None else self.budget_s
        used = next((n for n, sum_s in enumerate(sums_s) if sum_s >= budget_s), None)
        _, begun, order = present(history[:used], self._order)
        return used if order else begun

    def of(self, treatments: tuple[str, ...], blocks: int, budget_s: float | None) -> "Race":
        """Return a race of other treatments in which none leaves early."""
        others = [name for name in treatments if name != self.baseline]
        cells = {(workload, name) for workload in self.workloads for name in others}
        return replace(
            self,
            treatments=treatments,
            blocks=blocks,
            budget_s=budget_s,
            undecided=lambda _: cells,
            checks=0,
        )

    def _order(self, before: Sequence[Outcome], block: int) -> Sequence[Cell]:
        if len(before) not in self._orders:
            self._orders[len(before)] = self._planned(before, block)
        return self._orders[len(before)]

    def _planned(self, before: Sequence[Outcome], block: int) -> Sequence[Cell]:
        """Return the trials of a block, none where the race is over."""
        every = {(w, t) for w in self.workloads for t in self.treatments if t != self.baseline}
        running = every if block < _FEWEST else every & set(self.undecided(before))
        chance = random.Random(f"{self.seed}/{block}")
        first = [] if block else [(w, self.baseline) for w in self.workloads] * self.checks
        order = [
            (workload, treatment)
            for workload in chance.sample(self.workloads, len(self.workloads))
            for treatment in self._one(sorted(t for w, t in running if w == workload), chance)
        ]
        planned = first + grouped(order, self.plots, chance)
        over = self.blocks is not None and block >= self.blocks
        over = over or (block > 0 and exceeds(self.budget_s, before, len(planned)))
        return () if over else planned

    def _one(self, running: list[str], chance: random.Random) -> list[str]:
        """Return the order of one workload's treatments, the baseline evenly among them."""
        if not running:
            return []
        chance.shuffle(running)
        often = self.often(len(running))
        apart = len(running) / often
        first = chance.uniform(0, apart)
        for i in reversed(range(often)):
            running.insert(round(first + i * apart), self.baseline)
        return running


def race_of(inputs: PlanInput, rule: Rule, make: type[Race] = Race) -> Race:
    """Return the race of a spec's treatments."""
    names, blocks, budget_s = tuple(inputs.treatments), inputs.blocks, inputs.budget_s
    return make(
        treatments=names,
        baseline=rule.baseline,
        workloads=tuple(inputs.workloads),
        blocks=_BLOCKS if blocks is None and budget_s is None else blocks,
        budget_s=budget_s,
        seed=inputs.spec.design.seed,
        undecided=undecided(rule, names),
        checks=_CHECKS if budget_s is None or budget_s >= _CHECKED_S else 0,
        reset=inputs.reset,
        plots=inputs.plots,
    )


RACE = DesignKind(
    "a race: blocks of all treatments that are still undecided, the baseline among them",
    race_of,
    trial_lengths,
)
GRID = DesignKind(
    "a full grid, raced: blocks of all cells that are still undecided", race_of, trial_lengths
)


def _fraction(spec: Spec, place: str, every: Callable[[], Grid]) -> Grid:
    """Return the cells of a grid that a D-optimal fraction selects."""
    from mydyno.stats.factors import fraction  # noqa: PLC0415 - a second that only it needs

    grid = every()
    wanted, most = spec.design.cells, len(grid)
    if wanted is not None and not 1 < wanted <= most:
        raise SpecError(
            f"{place}: design.cells = {wanted}: must be from 2 to {most}, the size of the grid"
        )
    names = list(grid)
    chosen = fraction(list(numbered(grid).values()), wanted)
    return {names[i]: grid[names[i]] for i in chosen}


def _fraction_race(inputs: PlanInput, rule: Rule) -> Race:
    if not inputs.spec.factors:
        raise SpecError(f"{inputs.place}: design.kind: a fraction needs [factors]; add them")
    return race_of(inputs, rule)


FRACTION = DesignKind(
    "a D-optimal fraction of the grid, raced: the cells that estimate main effects and two-factor "
    "interactions best; the other cells are predicted from them",
    _fraction_race,
    trial_lengths,
    select=_fraction,
)


_PART_BLOCKS = 3  # of the winner without each of its parts: shares are shown, not tested
PARTS = "there is a winner: now it is compared with itself without each of its parts"
Winner = Callable[[Sequence[Outcome]], str | None]
"""The treatment that these outcomes show to be the best, if any."""


@dataclass(frozen=True)
class Ladder:
    """Measures the rungs, then each part of the winner by leaving it out.

    `race` is a race of the rungs, or complete blocks of them; then the parts come in blocks, too,
    and only where the number of the first ones is fixed.  `without` holds, for each rung, the
    treatments that lack one of its parts: they show interactions that the order of the rungs hides.
    """

    race: Race | Blocks
    baseline: str = field(repr=False)
    without: Mapping[str, Sequence[str]]
    winner: Winner = field(repr=False)
    total = None  # rungs leave a race early, and the parts follow from the winner

    @cached_property
    def _seconds(self) -> dict[int, Race | Blocks | None]:
        """A cache: what follows after so many trials of the rungs."""
        return {}

    @property
    def first(self) -> Sequence[str]:
        """Return the rungs."""
        return self.race.treatments

    @property
    def blocks(self) -> int | None:
        """Return the largest number of blocks of the rungs."""
        return self.race.blocks

    @property
    def budget_s(self) -> float | None:
        """Return the budget of rungs and parts."""
        return self.race.budget_s

    @property
    def size(self) -> Size | None:
        """Return that of the rungs, with the trials of the parts."""
        size = self.race.size
        parts = max((len(some) for some in self.without.values()), default=0)
        block = (parts + 1 + self.race.often(parts + 1)) * len(self.race.workloads) if parts else 0
        if size is None:
            return None
        spare = size.spare + repeating(_PART_BLOCKS) * block if size.spare else 0
        return replace(size, after=_PART_BLOCKS * block, spare=spare)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next trial of the rungs, or of the winner's parts."""
        ended = self.race.ended(history)
        if ended is None:
            return self.race.next(history)
        second = self._second(history[:ended])
        trial = second.next(history[ended:]) if second else None
        if trial is None:
            return None
        return replace(
            trial, id=len(history), block=trial.block + history[ended - 1].trial.block + 1
        )

    def phase(self, history: Sequence[Outcome]) -> str:
        """Return what the trial after these is for, unless it is the first for all rungs."""
        ended = self.race.ended(history)
        if ended is None:
            return phase(self.race, history)
        second = self._second(history[:ended])
        return (phase(second, history[ended:]) or PARTS) if second else ""

    def _second(self, first: Sequence[Outcome]) -> Race | Blocks | None:
        if len(first) not in self._seconds:
            self._seconds[len(first)] = self._planned(first)
        return self._seconds[len(first)]

    def _planned(self, first: Sequence[Outcome]) -> Race | Blocks | None:
        best = self.winner(first)
        parts = self.without.get(best, ()) if best else ()
        left_s = None
        if self.race.budget_s is not None:
            left_s = self.race.budget_s - spent(first)
        if best is None or not parts or (left_s is not None and left_s <= 0):
            return None
        names = tuple(dict.fromkeys((self.baseline, best, *parts)))
        return self.race.of(names, _PART_BLOCKS, left_s)


def phase(design: object, history: Sequence[Outcome]) -> str:
    """Return what a design's trial after these is for, "" while it is what it began with."""
    return design.phase(history) if isinstance(design, Blocks | Ladder) else ""


def _ladder(inputs: PlanInput, rule: Rule, first: Race | Blocks) -> Ladder:
    names = tuple(inputs.treatments)
    less = less_of(rungs_of(inputs.spec, inputs.place))
    parts = {name: split(settings) for name, settings in _parts(inputs).items()}
    every = replace(inputs, treatments={**inputs.treatments, **parts})
    return Ladder(
        replace(first, plots=every.plots),
        rule.baseline,
        {rung: list(of) for rung, of in less.items()},
        lambda outcomes: compare(outcomes, rule, names).winner,
    )


def _parts(inputs: PlanInput) -> Mapping[str, Settings]:
    """Return the rungs without each of their parts, of which the winner's are measured."""
    return spare_of(inputs.spec, inputs.place, inputs.environment)


LADDER = DesignKind(
    "a ladder, raced: blocks of all rungs that are still undecided; then the winner without each "
    "of its parts, to show each part's share",
    lambda inputs, rule: _ladder(inputs, rule, race_of(inputs, rule)),
    trial_lengths,
    more=_parts,
)
FIXED_LADDER = DesignKind(
    "a ladder in blocks: every rung once in each; then the winner without each of its parts, to "
    "show each part's share",
    lambda inputs, rule: _ladder(inputs, rule, blocks_of(inputs, rule)),
    trial_lengths,
    Method(),
    more=_parts,
)
