"""Closed queueing networks: where connections are, and what each station's speed is worth.

Exact mean value analysis (Reiser and Lavenberg, 1980) of single-class product-form networks; times
in seconds, speeds as ratios.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
_STEPS, _HALVES = 50, 20  # of the fit, and of one of its steps
_FARTHEST = 2.0  # of the logarithm of a demand, in one step
_CLOSE = 1e-4  # connections
_NONE = 1e-9  # connections


@dataclass(frozen=True, slots=True)
class Station:
    """One place where a transaction spends time: `demand_s` of it, alone or behind others."""

    name: str
    demand_s: float
    queues: bool = True


@dataclass(frozen=True, slots=True)
class Solution:
    """Transactions per second, and how many connections are at each station on average.

    `before` is that with one connection less, `slope` the derivatives of `lengths` to each demand's
    logarithm.
    """

    throughput: float
    lengths: Vector
    before: Vector
    slope: Vector


def solve(demands: Vector, waits: Vector, n: int) -> Solution:
    """Return the network with `n` connections, at least 1; `waits` is 1 at a queue, else 0."""
    lengths = before = np.zeros(len(demands))
    rate, slope = 0.0, np.zeros((len(demands), len(demands)))
    for inside in range(1, n + 1):
        before = lengths
        stays = demands * (1.0 + waits * before)
        more = np.diag(stays) + (demands * waits)[:, None] * slope
        total = stays.sum()
        rate, lengths = inside / total, inside * stays / total
        slope = inside * (more - np.outer(stays, more.sum(axis=0)) / total) / total
    return Solution(rate, lengths, before, slope)


def of(stations: Sequence[Station], n: int) -> Solution:
    """Return the solution of a network of these stations, in their order."""
    demands = np.array([s.demand_s for s in stations])
    return solve(demands, np.array([s.queues for s in stations], dtype=float), n)


def elasticities(stations: Sequence[Station], n: int) -> dict[str, float]:
    """Return d ln(throughput) / d ln(speed) of each station; they add up to 1."""
    found = of(stations, n)
    worth = (found.lengths - found.before).tolist()
    return {s.name: e for s, e in zip(stations, worth, strict=True)}


def fitted(lengths: dict[str, float], queues: frozenset[str], n: int) -> list[Station]:
    """Return stations at which `n` connections spread as in `lengths`, with a throughput of 1.

    Names in `queues` are stations where connections wait for each other; at the others they do not.
    The demands are those of the largest likelihood: a product-form network is an exponential
    family in the logarithms of its demands, so Newton's steps lead to the one solution.
    """
    total = sum(lengths.values())
    wanted = {name: length * n / total for name, length in lengths.items() if length > _NONE}
    target = np.array(list(wanted.values()))
    waits = np.array([name in queues for name in wanted], dtype=float)
    logs = np.log(target / n)
    found = solve(np.exp(logs), waits, n)
    for _ in range(_STEPS):
        error = target - found.lengths
        if np.abs(error).max() < _CLOSE:
            break
        step = np.linalg.lstsq(found.slope, error, rcond=None)[0]
        step *= min(1.0, _FARTHEST / max(np.abs(step).max(), _FARTHEST))
        for _ in range(_HALVES):
            tried = solve(np.exp(logs + step), waits, n)
            if np.abs(target - tried.lengths).sum() < np.abs(error).sum():
                break
            step /= 2
        logs, found = logs + step, tried
    demands = dict(zip(wanted, np.exp(logs).tolist(), strict=True))
    made = [Station(name, demands.get(name, 0.0), name in queues) for name in lengths]
    rate = of(made, n).throughput
    return [Station(one.name, one.demand_s * rate, one.queues) for one in made]
