"""A soak: one long trial of the winner, after all trials of the design."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mydyno.campaign.stops import Fixed
from mydyno.model import Outcome, Trial

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
