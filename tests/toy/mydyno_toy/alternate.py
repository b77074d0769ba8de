"""A design: the treatments in turn, in the order of the spec and then in reverse, and again."""

from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.campaign.designs import DesignKind, PlanInput, seed_of, trial_lengths
from mydyno.model import Outcome, Reset, Trial
from mydyno.stats import Estimator, Method, Rule


@dataclass(frozen=True, slots=True)
class Alternate:
    """Turns of all treatments under one workload."""

    treatments: tuple[str, ...]
    workload: str
    blocks: int
    seed: int
    reset: Reset
    budget_s: float | None = None
    size = None

    @property
    def total(self) -> int:
        return self.blocks * len(self.treatments)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        number = len(history)
        if number >= self.total:
            return None
        block, place = divmod(number, len(self.treatments))
        seed = seed_of(self.seed, number, block, self.reset)
        name = self.treatments[-1 - place if block % 2 else place]
        return Trial(number, name, self.workload, block, seed, self.reset)


def made(inputs: PlanInput, rule: Rule) -> Alternate:
    workload = next(iter(inputs.workloads))
    names, seed = tuple(inputs.treatments), inputs.spec.design.seed
    return Alternate(names, workload, inputs.blocks or 3, seed, inputs.reset)


DESIGN = DesignKind(
    "in turn: the treatments in the order of the spec, then in reverse",
    made,
    trial_lengths,
    Method(Estimator.BLOCKS),
)
