"""Burst credits: full speed while there are some, the floor when they are spent."""

from dataclasses import dataclass

import numpy as np

from mydyno.testing.simulate.noise import Logs


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of `full_s` seconds at full speed, of which `refill` come back each second.

    Empty, the log throughput is lower by `floor`.
    """

    full_s: float
    refill: float = 0.1
    floor: float = 1.2

    def rested(self, left_s: float, seconds: float) -> float:
        """Return what is in it after an idle time."""
        return min(self.full_s, left_s + seconds * self.refill)

    def lasts(self, left_s: float) -> float:
        """Return how many seconds of load it is good for."""
        return left_s / (1.0 - self.refill)

    def spent(self, left_s: float, seconds: float) -> float:
        """Return what is in it after so many seconds of load."""
        return max(0.0, left_s - seconds * (1.0 - self.refill))

    def effect(self, left_s: float, times: Logs) -> Logs:
        """Return the log effect at `times` of a load that began with `left_s` in it."""
        return np.where(times < self.lasts(left_s), 0.0, -self.floor)
