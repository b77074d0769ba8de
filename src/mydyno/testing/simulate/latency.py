"""Latencies that go with a throughput: a closed loop of threads, log-normal within a second."""

import math
from functools import cache

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from mydyno.testing.simulate.noise import Logs

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
