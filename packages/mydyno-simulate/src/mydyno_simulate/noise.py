"""What a host does to a throughput besides the treatment: seconds, runs, drift, neighbours."""

import math
from dataclasses import dataclass, field
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.signal import lfilter
from scipy.special import ndtr, ndtri

Logs = NDArray[np.float64]
_GRID_S = 30.0  # steps of the drift; it is slow
_AHEAD = 512  # steps or stays drawn at once


def seconds(begin_s: float, n: int) -> Logs:
    """Return the beginnings of `n` seconds, in seconds."""
    return np.asarray(begin_s + np.arange(n), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Seconds:
    """Noise within a trial, as standard deviations of logs: white, first-order autoregressive."""

    white_sd: float = 0.05
    ar_sd: float = 0.06
    ar_phi: float = 0.90

    def draw(self, chance: np.random.Generator, n: int, before: float | None) -> tuple[Logs, float]:
        """Return `n` seconds and the state to continue from; `before` is that of those before."""
        start = chance.normal(0.0, self.ar_sd) if before is None else before
        shock = chance.normal(0.0, self.ar_sd * math.sqrt(1 - self.ar_phi**2), n)
        slow, _ = lfilter([1.0], [1.0, -self.ar_phi], shock, zi=[self.ar_phi * start])
        return slow + chance.normal(0.0, self.white_sd, n), float(slow[-1]) if n else start


@dataclass(frozen=True, slots=True)
class Runs:
    """What one start differs from the next: sd of logs, and Student's df of the tail."""

    sd: float = 0.015
    df: float = math.inf

    def draw(self, chance: np.random.Generator, factor: float = 1.0) -> float:
        """Return one start's log effect."""
        if math.isinf(self.df):
            return float(chance.normal(0.0, self.sd * factor))
        scale = math.sqrt((self.df - 2) / self.df)  # so that `sd` stays the standard deviation
        return float(chance.standard_t(self.df) * self.sd * factor * scale)


@dataclass(frozen=True, slots=True)
class Drift:
    """A host that grows slower and faster over hours: an Ornstein-Uhlenbeck process."""

    sd: float
    tau_s: float = 7200.0


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Somebody else's work: a `share` of the time, `stay_s` at a stretch, `depth` is missing."""

    share: float
    depth: float = 0.10
    stay_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Noise:
    """All of it."""

    seconds: Seconds
    runs: Runs
    drift: Drift
    neighbour: Neighbour


@dataclass(slots=True)
class Weather:
    """Drift and neighbours over the campaign's time, the same however often they are asked for."""

    noise: Noise
    seed: int
    _level: Logs = field(default_factory=lambda: np.zeros(0))
    _edges: Logs = field(default_factory=lambda: np.zeros(1))
    _drifting: np.random.Generator = field(init=False)
    _coming: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self._drifting = np.random.default_rng((self.seed, 1))
        self._coming = np.random.default_rng((self.seed, 2))

    def at(self, begin_s: float, n: int) -> Logs:
        """Return the log effect of the `n` seconds from `begin_s` on."""
        times = seconds(begin_s, n)
        return self._drift(times) + self._neighbour(times)

    def _drift(self, times: Logs) -> Logs:
        drift = self.noise.drift
        if drift.sd == 0 or len(times) == 0:
            return np.zeros(len(times))
        while len(self._level) * _GRID_S <= times[-1] + _GRID_S:
            self._level = np.append(self._level, self._more_drift())
        return np.interp(times, np.arange(len(self._level)) * _GRID_S, self._level)

    def _more_drift(self) -> Logs:
        drift = self.noise.drift
        keep = math.exp(-_GRID_S / drift.tau_s)
        last = self._level[-1] if len(self._level) else self._drifting.normal(0.0, drift.sd)
        shock = self._drifting.normal(0.0, drift.sd * math.sqrt(1 - keep**2), _AHEAD)
        more, _ = lfilter([1.0], [1.0, -keep], shock, zi=[keep * last])
        return np.asarray(more)

    def _neighbour(self, times: Logs) -> Logs:
        neighbour = self.noise.neighbour
        if neighbour.share == 0 or len(times) == 0:
            return np.zeros(len(times))
        away_s = neighbour.stay_s * (1 - neighbour.share) / neighbour.share
        while self._edges[-1] <= times[-1]:
            stays = self._coming.exponential((away_s, neighbour.stay_s), (_AHEAD, 2)).ravel()
            self._edges = np.append(self._edges, self._edges[-1] + np.cumsum(stays))
        there = np.searchsorted(self._edges, times, side="right") % 2 == 0
        return np.where(there, math.log1p(-neighbour.depth), 0.0)


THREADS = 16
SIGMA = 0.55  # of log latency within a second
RATE = 1000.0  # events each second where the log throughput is 0
_POINTS = 400  # of the quantile function, of which a second's histogram is made


def quantile(logs: Logs, tail: float, share: float) -> float:
    """Return the latency in seconds that `share` of all events of these seconds did not exceed.

    Little's law gives each second's mean, ``THREADS`` over its rate; `tail` widens the spread.
    """
    middles, sigma = _middles(logs, tail), SIGMA * math.exp(tail)
    if len(middles) == 1:
        return math.exp(float(middles[0]) + sigma * float(ndtri(share)))
    weights = np.exp(logs) / np.exp(logs).sum()
    low, high = float(middles.min()) - 9 * sigma, float(middles.max()) + 9 * sigma

    def beyond(at: float) -> float:
        return float(weights @ ndtr((at - middles) / sigma)) - share

    return math.exp(float(brentq(beyond, low, high)))


def sample(log: float, tail: float, chance: np.random.Generator) -> tuple[Logs, Logs]:
    """Return latencies in seconds and how many events each of them stands for, of one second."""
    sigma = SIGMA * math.exp(tail)
    middle = float(_middles(np.array([log]), tail)[0])
    events = chance.poisson(RATE * math.exp(log))
    counts = chance.multinomial(events, np.full(_POINTS, 1 / _POINTS))
    return np.exp(middle + sigma * _normal()), counts.astype(float)


def _middles(logs: Logs, tail: float) -> Logs:
    """Return the log of each second's median latency."""
    sigma = SIGMA * math.exp(tail)
    return np.asarray(math.log(THREADS / RATE) - logs - sigma**2 / 2)


@cache
def _normal() -> Logs:
    return np.asarray(ndtri((np.arange(_POINTS) + 0.5) / _POINTS))
