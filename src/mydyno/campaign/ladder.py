"""A ladder: its rungs raced, then the winner without each of its parts."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mydyno.campaign.adaptive import trial_lengths
from mydyno.campaign.designs import DesignKind, PlanInput
from mydyno.campaign.race import Race, race_of
from mydyno.campaign.treatments import less_of, rungs_of, spare_of
from mydyno.model import Outcome, Settings, Trial
from mydyno.stats import Rule, compare
from mydyno.stats.forecast import Size

_BLOCKS = 3  # of the winner without each of its parts: shares are shown, not tested
Winner = Callable[[Sequence[Outcome]], str | None]
"""The treatment that these outcomes show to be the best, if any."""


@dataclass(frozen=True)
class Ladder:
    """Races the rungs, then measures each part of the winner by leaving it out.

    `without` holds, for each rung, the treatments that lack one of its parts: they show
    interactions that the order of the rungs hides.
    """

    race: Race
    without: Mapping[str, Sequence[str]]
    winner: Winner = field(repr=False)
    # A cache: a function of the trials so far that is expensive to compute.
    _seconds: dict[int, Race | None] = field(default_factory=dict, repr=False, compare=False)

    @property
    def blocks(self) -> int | None:
        """Return the largest number of blocks of the first race."""
        return self.race.blocks

    @property
    def budget_s(self) -> float | None:
        """Return the budget of both races."""
        return self.race.budget_s

    @property
    def total(self) -> None:
        """Return None: rungs leave the race early."""
        return

    def size(self, trial_s: float) -> Size:
        """Return that of the first race."""
        return self.race.size(trial_s)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the next trial of the rungs' race, or of the winner's parts."""
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

    def _second(self, first: Sequence[Outcome]) -> Race | None:
        if len(first) not in self._seconds:
            self._seconds[len(first)] = self._planned(first)
        return self._seconds[len(first)]

    def _planned(self, first: Sequence[Outcome]) -> Race | None:
        best = self.winner(first)
        parts = self.without.get(best, ()) if best else ()
        left_s = None
        if self.race.budget_s is not None:
            left_s = self.race.budget_s - sum(o.machine_time_s for o in first)
        if best is None or not parts or (left_s is not None and left_s <= 0):
            return None
        others = [t for t in dict.fromkeys((best, *parts)) if t != self.race.baseline]
        cells = {(w, t) for w in self.race.workloads for t in others}
        return replace(
            self.race,
            treatments=(self.race.baseline, *others),
            blocks=_BLOCKS,
            budget_s=left_s,
            undecided=lambda _: cells,
            checks=0,
            _orders={},
        )


def _ladder(inputs: PlanInput, rule: Rule) -> Ladder:
    names = tuple(inputs.treatments)
    less = less_of(rungs_of(inputs.spec, inputs.place))
    return Ladder(
        race_of(inputs, rule),
        {rung: list(of) for rung, of in less.items()},
        lambda outcomes: compare(outcomes, rule, names).winner,
    )


def _parts(inputs: PlanInput) -> Mapping[str, Settings]:
    """Return the rungs without each of their parts, of which the winner's are measured."""
    return spare_of(inputs.spec, inputs.place, inputs.environment)


LADDER = DesignKind(
    "a ladder, raced: blocks of all rungs that are still undecided; then the winner without each "
    "of its parts, to show each part's share",
    _ladder,
    trial_lengths,
    more=_parts,
)
