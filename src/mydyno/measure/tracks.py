"""Tracks: one quantity over time, as rates of counters and as levels of gauges."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mydyno.measure.sampled import Sampled, Values

_LATE = 2.5  # intervals without a reading are a gap from here on, not a long second


@dataclass(frozen=True, slots=True)
class Track:
    """Values with the monotonic seconds they belong to; NaN where nothing is known."""

    at_s: Values
    values: Values

    def __add__(self, other: "Track") -> "Track":
        return Track(self.at_s, self.values + other.values)

    def __sub__(self, other: "Track") -> "Track":
        return Track(self.at_s, self.values - other.values)

    def over(self, other: "Track") -> "Track":
        """Return this track divided by another; NaN where that is zero."""
        divisor = np.where(other.values == 0, np.nan, other.values)
        return Track(self.at_s, self.values / divisor)


def level(sampled: Sampled, name: str, of: str = "") -> Track | None:
    """Return a gauge as it was read, or None where the host or server does not have it."""
    values = sampled.find(name, of)
    return None if values is None else Track(sampled.read_at(name, of), values)


def rate(sampled: Sampled, name: str, of: str = "") -> Track | None:
    """Return a counter's rate per second, at the later of two readings; None without the counter.

    NaN where it fell or its process restarted, and where two readings are too far apart to give a
    rate by the second.
    """
    counter = level(sampled, name, of)
    if counter is None:
        return None
    known = np.flatnonzero(~np.isnan(counter.values) & ~np.isnan(counter.at_s))
    rates = np.full(len(counter.values), np.nan)
    if len(known) > 1:
        passed = np.diff(counter.at_s[known])
        steps = np.diff(counter.values[known])
        longest = _LATE * max(float(np.median(passed)), sampled.head.interval_ns * 1e-9)
        valid = (passed > 0) & (passed < longest) & (steps >= 0)
        valid &= _same(sampled, sampled.restarts(name, of), known)
        rates[known[1:][valid]] = steps[valid] / passed[valid]
    return Track(counter.at_s, rates)


def _same(
    sampled: Sampled, restarts: NDArray[np.int64], known: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each step between two readings whether no restart fell into it."""
    before = np.searchsorted(restarts, sampled.seqs[known], side="right")
    return np.asarray(np.diff(before) == 0)
