"""When a trial has told enough: pure functions of its intervals so far."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mydyno.model import Interval, Window

_SLACK_S = 0.05  # sysbench reports its 60th second anywhere between 59.99 and 60.01


class Stop(Protocol):
    """Ends a trial when more of it cannot help."""

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the measured window once it is complete, else None."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """The articles' own protocol: a warm-up and a window of fixed lengths."""

    warmup_s: float
    window_s: float

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the window once the last interval has reached its end."""
        end_s = self.warmup_s + self.window_s
        if not intervals or intervals[-1].t_s < end_s - _SLACK_S:
            return None
        return Window(self.warmup_s, end_s)
