"""Closed queueing networks: where connections are, and what each station's speed is worth.

Exact mean value analysis (Reiser and Lavenberg, 1980) of single-class product-form networks; times
in seconds, speeds as ratios.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite

_STEPS = 200  # of the fit; the error halves every few
_CLOSE = 1e-4  # connections


@dataclass(frozen=True, slots=True)
class Station:
    """One place where a transaction spends time: `demand_s` of it, alone or behind others."""

    name: str
    demand_s: float
    queues: bool = True


@dataclass(frozen=True, slots=True)
class Solution:
    """Transactions per second, and how many connections are at each station on average."""

    throughput: float
    lengths: dict[str, float]


def solve(stations: Sequence[Station], n: int) -> tuple[Solution, Solution]:
    """Return the network with `n` connections, and with one less; `n` is at least 1."""
    lengths = dict.fromkeys((s.name for s in stations), 0.0)
    before = now = Solution(0.0, lengths)
    for inside in range(1, n + 1):
        before = now
        stays = {
            s.name: s.demand_s * (1.0 + before.lengths[s.name] if s.queues else 1.0)
            for s in stations
        }
        rate = inside / sum(stays.values())
        now = Solution(rate, {name: rate * stay for name, stay in stays.items()})
    return now, before


def elasticities(stations: Sequence[Station], n: int) -> dict[str, float]:
    """Return d ln(throughput) / d ln(speed) of each station; they add up to 1."""
    now, before = solve(stations, n)
    return {s.name: now.lengths[s.name] - before.lengths[s.name] for s in stations}


def fitted(lengths: dict[str, float], queues: frozenset[str], n: int) -> list[Station]:
    """Return stations at which `n` connections spread as in `lengths`, with a throughput near 1.

    Names in `queues` are stations where connections wait for each other; at the others they do not.
    """
    total = sum(lengths.values())
    shares = {name: max(length, 0.0) * n / total for name, length in lengths.items()}
    demands = {name: share / n for name, share in shares.items()}
    for _ in range(_STEPS):
        stations = [Station(name, d, name in queues) for name, d in demands.items()]
        found = solve(stations, n)[0].lengths
        if all(abs(found[name] - share) < _CLOSE for name, share in shares.items()):
            break
        for name, share in shares.items():
            if found[name] > 0 and isfinite(share / found[name]):
                demands[name] *= (share / found[name]) ** 0.5
    return [Station(name, d, name in queues) for name, d in demands.items()]
