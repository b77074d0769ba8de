"""Complete blocks: every treatment once in each; a screen is one of factors' extremes."""

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

from mydyno.campaign.designs import (
    Adaptive,
    Cell,
    DesignKind,
    Grid,
    PlanInput,
    Stops,
    exceeds,
    exhausted,
    grouped,
    seed_of,
    trial_lengths,
)
from mydyno.campaign.spec import Spec
from mydyno.model import Outcome, Reset, SpecError, Trial, TrialStatus
from mydyno.stats import Goal, Method, Rule, mark_invalid
from mydyno.stats.effects import Size

_BLOCKS = 5  # without `blocks` or `budget`: the least that shows a few percent on a quiet host
_LOST = 2  # blocks without a valid trial end it: what fails at once never uses a budget up
AGAIN = "something else disturbed some trials: they are repeated, beside the baseline"
_SCREENED = 7  # factors of two levels from which on they are screened: 128 cells


def present(
    history: Sequence[Outcome], planned: Callable[[Sequence[Outcome], int], Sequence[Cell]]
) -> tuple[int, int, Sequence[Cell]]:
    """Return the present block, after how many trials it began, and its trials, none if over.

    `planned` returns the trials of a block from those before it.
    """
    block = begun = 0
    while order := planned(history[:begun], block):
        if len(history) < begun + len(order):
            break
        block, begun = block + 1, begun + len(order)
    return block, begun, order


@dataclass(frozen=True, slots=True)
class Blocks:
    """Randomised complete blocks: in each block every treatment once under every workload.

    Treatments under one workload follow each other, in random order, so that what is compared
    is near in time (randomised multiple interleaved trials: Abedi and Brecht, 2017).  All
    trials of a block meet the same load (`mydyno.campaign.designs`).
    `blocks` or `budget_s` ends it, whichever comes first, and so do two complete blocks in which
    no trial was OK.  Treatments of one whole plot (`mydyno.campaign.designs`) stay together.

    `valid` marks the trials that something else than their treatment disturbed.  What they lack for
    `blocks` comparisons with `baseline` is measured again, beside it, in at most half as many
    blocks more; without `valid` it is not.
    """

    treatments: tuple[str, ...]
    workloads: tuple[str, ...]
    blocks: int | None
    budget_s: float | None
    seed: int
    reset: Reset = Reset.DATASET
    plots: Mapping[str, str] = field(default_factory=dict, repr=False)
    baseline: str = field(default="", repr=False)
    valid: Callable[[Sequence[Outcome]], Sequence[Outcome]] | None = field(default=None, repr=False)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next trial of the present block, or the first of the next one."""
        block, begun, order = present(history, self._planned)
        place = len(history) - begun
        if not order or exhausted(self.budget_s, history):
            return None
        if place == 0 and block and exceeds(self.budget_s, history, len(order)):
            return None
        workload, treatment = order[place]
        seed = seed_of(self.seed, len(history), block, self.reset)
        return Trial(len(history), treatment, workload, block, seed, self.reset)

    def often(self, running: int) -> int:
        """Return how many times a block holds the baseline: once, with any other treatments."""
        del running
        return 1

    def ended(self, history: Sequence[Outcome]) -> int | None:
        """Return after how many trials all blocks were complete, or None if they are not."""
        _, begun, order = present(history, self._planned)
        return None if order else begun

    def phase(self, history: Sequence[Outcome]) -> str:
        """Return what the trial after these is for where all blocks are complete, else ""."""
        block, _, order = present(history, self._planned)
        return AGAIN if order and self.blocks is not None and block >= self.blocks else ""

    def of(self, treatments: tuple[str, ...], blocks: int, budget_s: float | None) -> "Blocks":
        """Return blocks of other treatments."""
        return replace(self, treatments=treatments, blocks=blocks, budget_s=budget_s)

    @property
    def total(self) -> int | None:
        """Return the number of trials, if that of blocks is fixed and none is disturbed."""
        return self.blocks * self._size if self.blocks else None

    @property
    def size(self) -> Size | None:
        """Return what a forecast needs: the baseline comes once in each block."""
        spare = repeating(self.blocks or 0) * self._size if self.valid else 0
        return Size(len(self.treatments) - 1, len(self.workloads), self.blocks, spare=spare)

    @property
    def _size(self) -> int:
        """Return the number of trials in a block."""
        return len(self.treatments) * len(self.workloads)

    def _planned(self, before: Sequence[Outcome], block: int) -> Sequence[Cell]:
        """Return the trials of a block; after the last, those disturbed before it, if any."""
        order, blocks = self._order(block), self.blocks
        last = before[-_LOST * self._size :]
        if block >= _LOST and all(o.status is not TrialStatus.OK for o in last):
            return ()
        if blocks is None or block < blocks:
            return order
        if self.valid is None or block >= blocks + repeating(blocks):
            return ()
        ends = {
            (o.trial.workload, o.trial.treatment, o.trial.block): o.status
            for o in self.valid(before)
        }
        void = {key for key, status in ends.items() if status is TrialStatus.VOID}
        pairs = Counter(
            (w, t) for w, t, at in ends.keys() - void if (w, self.baseline, at) not in void
        )
        lacking = {cell for cell in order if pairs[cell] < blocks}
        beside = {(workload, self.baseline) for workload, _ in lacking}
        return [cell for cell in order if cell in lacking | beside]

    def _order(self, block: int) -> list[Cell]:
        chance = random.Random(f"{self.seed}/{block}")
        order = [
            (workload, treatment)
            for workload in chance.sample(self.workloads, len(self.workloads))
            for treatment in chance.sample(self.treatments, len(self.treatments))
        ]
        return grouped(order, self.plots, chance)


def repeating(blocks: int) -> int:
    """Return the most blocks that repeat what was disturbed in so many."""
    return ceil(blocks / 2)


def blocks_of(inputs: PlanInput, rule: Rule) -> Blocks:
    """Return the blocks of a spec's treatments."""
    blocks = _BLOCKS if inputs.blocks is None and inputs.budget_s is None else inputs.blocks
    return replace(_of(inputs, rule, inputs.treatments, blocks), plots=inputs.plots)


def _of(inputs: PlanInput, rule: Rule, treatments: Iterable[str], blocks: int | None) -> Blocks:
    return Blocks(
        tuple(treatments), tuple(inputs.workloads), blocks, inputs.budget_s,
        inputs.spec.design.seed, inputs.reset, baseline=rule.baseline,
        valid=partial(mark_invalid, rule=rule),
    )  # fmt: skip


BLOCKS = DesignKind(
    "blocks: every treatment once in each",
    blocks_of,
    trial_lengths,
    Method(),
)


def screened(spec: Spec) -> bool:
    """Return whether factors are screened: too many to try every combination, of two levels."""
    two = all(len(levels) == 2 and levels != ["*"] for levels in spec.factors.values())  # noqa: PLR2004
    return spec.design.kind == "screen" or (
        spec.design.kind == "auto" and two and len(spec.factors) >= _SCREENED
    )


def _runs(spec: Spec, place: str, grid: Callable[[], Grid]) -> Grid:
    """Return the runs of a Plackett-Burman design and its foldover (1946; Box and Wilson, 1951).

    The foldover (each level reversed) keeps main effects clear of two-factor interactions.
    """
    del grid
    from pydoe import fold, pbdesign  # noqa: PLC0415 - import takes over a second

    for key, levels in spec.factors.items():
        if len(levels) != 2:  # noqa: PLR2004
            raise SpecError(f"{place}: factors.{key}: a screen needs two levels, not {len(levels)}")
    rows = fold(pbdesign(len(spec.factors)))
    return {
        f"run-{number:02d}": {
            key: levels[int(at > 0)]
            for (key, levels), at in zip(spec.factors.items(), row, strict=True)
        }
        for number, row in enumerate(rows, 1)
    }


def _screen_lengths(inputs: PlanInput) -> Stops:
    stops = trial_lengths(inputs)
    return replace(stops, alone=True) if isinstance(stops, Adaptive) else stops


SCREEN = DesignKind(
    "a screen: a Plackett-Burman design and its foldover rank the settings in the smallest number "
    "of runs",
    lambda inputs, rule: _of(inputs, rule, inputs.cells, inputs.blocks or 1),
    _screen_lengths,
    Method(goal=Goal.FACTORS),
    select=_runs,
)
