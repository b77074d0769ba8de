"""Stop rules of trials: pure functions of the intervals so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mydyno.model import Interval, Outcome, Trial, Window


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
