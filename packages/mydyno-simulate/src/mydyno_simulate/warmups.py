"""How a throughput comes to its steady state, if it does."""

import math
from dataclasses import dataclass

import numpy as np

from mydyno_simulate.noise import Logs, seconds

_STEPS = ((0.7, 0.5), (1.6, 0.75), (3.0, 1.0))  # at so many tau, so much of the way is done
_JITTER = 0.15  # of a step's time, from one start to the next
_SLOW = (0.8, 4.0)  # the first of two scales takes so much of the amplitude; the second is slower
_LEAVING_S = 150.0  # mean stay at a level of what never settles


@dataclass(frozen=True, slots=True)
class Warmup:
    """A kind of warm-up: `amplitude` is missing at the start (negative: is too much), for `tau_s`.

    Kinds: ``none``, ``exponential``, ``stepwise`` (three steps, not at the same time in each
    start), ``two-scale`` (a fifth of the amplitude takes four times as long), ``power`` (falls by
    the square of the time), ``slow-down`` (exponential from above), ``never`` (jumps between levels
    for ever), ``trend`` (goes down or up for ever, an amplitude each `tau_s`).
    """

    kind: str = "exponential"
    amplitude: float = 0.40
    tau_s: float = 45.0

    def curve(self, begin_s: float, n: int, start: int) -> Logs:
        """Return the log effect of `n` seconds from `begin_s` after the start numbered `start`."""
        times = seconds(begin_s + 0.5, n)
        return KINDS[self.kind](self, times, np.random.default_rng((start, 3)))

    def bias(self, begin_s: float, end_s: float, start: int) -> float:
        """Return how far the mean log of a window lies from the steady state's."""
        return float(self.curve(begin_s, int(end_s - begin_s), start).mean())


def _none(_: Warmup, times: Logs, __: np.random.Generator) -> Logs:
    return np.zeros(len(times))


def _exponential(warmup: Warmup, times: Logs, _: np.random.Generator) -> Logs:
    return np.log1p(-warmup.amplitude * np.exp(-times / warmup.tau_s))


def _slow_down(warmup: Warmup, times: Logs, _: np.random.Generator) -> Logs:
    return np.asarray(np.log1p(abs(warmup.amplitude) * np.exp(-times / warmup.tau_s)))


def _two_scale(warmup: Warmup, times: Logs, _: np.random.Generator) -> Logs:
    share, slower = _SLOW
    fast = share * np.exp(-times / warmup.tau_s)
    slow = (1 - share) * np.exp(-times / (slower * warmup.tau_s))
    return np.log1p(-warmup.amplitude * (fast + slow))


def _power(warmup: Warmup, times: Logs, _: np.random.Generator) -> Logs:
    return np.asarray(np.log1p(-warmup.amplitude / (1 + times / warmup.tau_s) ** 2))


def _stepwise(warmup: Warmup, times: Logs, chance: np.random.Generator) -> Logs:
    level = np.full(len(times), -warmup.amplitude)
    for at, done in _STEPS:
        late = times >= at * warmup.tau_s * (1 + chance.uniform(-_JITTER, _JITTER))
        level[late] = -warmup.amplitude * (1 - done)
    return np.asarray(np.log1p(level))


def _never(warmup: Warmup, times: Logs, chance: np.random.Generator) -> Logs:
    edges = np.cumsum(chance.exponential(_LEAVING_S, 64))
    levels = np.log1p(-warmup.amplitude * chance.uniform(0.0, 1.0, 65))
    return np.asarray(levels[np.searchsorted(edges, times) % 65])


def _trend(warmup: Warmup, times: Logs, _: np.random.Generator) -> Logs:
    return np.asarray(math.log1p(-warmup.amplitude) * times / warmup.tau_s)


KINDS = {
    "none": _none,
    "exponential": _exponential,
    "slow-down": _slow_down,
    "two-scale": _two_scale,
    "power": _power,
    "stepwise": _stepwise,
    "never": _never,
    "trend": _trend,
}
