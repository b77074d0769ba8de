"""Closed networks: exact lengths and elasticities, and the network that fits an account."""

import math
import random

import pytest

from mydyno.diagnose.network import Station, elasticities, fitted, of

TWO = (Station("a", 0.01), Station("b", 0.01))


def test_two_balanced_queues_share_their_customers_and_their_elasticity():
    now = of(TWO, 16)
    assert now.lengths == pytest.approx([8.0, 8.0])
    assert now.throughput == pytest.approx(16 / (16 + 1) / 0.01)  # N / (N + K - 1) / D
    assert now.before == pytest.approx(of(TWO, 15).lengths)
    assert elasticities(TWO, 16) == pytest.approx({"a": 0.5, "b": 0.5})


def test_one_saturated_queue_gets_all():
    stations = (Station("disk", 0.02), Station("cpu", 0.001), Station("think", 0.01, queues=False))
    worth = elasticities(stations, 64)
    assert worth["disk"] == pytest.approx(1.0, abs=1e-6)
    assert sum(worth.values()) == pytest.approx(1.0)


def test_one_connection_spends_its_time_where_it_is():
    stations = (Station("a", 0.03), Station("b", 0.01, queues=False))
    assert elasticities(stations, 1) == pytest.approx({"a": 0.75, "b": 0.25})


@pytest.mark.parametrize("n", [1, 2, 8, 64])
def test_an_elasticity_is_the_derivative(n):
    """What the sum rule rests on: Q(N) - Q(N-1) is d ln X / d ln speed, for queues and delays."""
    stations = (Station("q", 0.004), Station("r", 0.003), Station("z", 0.02, queues=False))
    step = 1e-5
    for station in stations:
        faster = [
            Station(s.name, s.demand_s * (math.exp(-step) if s is station else 1.0), s.queues)
            for s in stations
        ]
        slope = math.log(of(faster, n).throughput / of(stations, n).throughput) / step
        assert elasticities(stations, n)[station.name] == pytest.approx(slope, abs=1e-3)


@pytest.mark.parametrize(
    "lengths",
    [
        {"read": 13.1, "cpu": 0.4, "latch": 2.5},
        {"read": 1.0, "cpu": 1.0, "latch": 14.0},
        {"read": 0.0, "cpu": 16.0, "latch": 0.0},
    ],
)
def test_the_fitted_network_has_its_connections_where_the_account_has_them(lengths):
    found = of(fitted(lengths, frozenset({"read", "cpu"}), 16), 16)
    assert found.lengths == pytest.approx([*lengths.values()], abs=0.02)
    assert found.throughput == pytest.approx(1.0)


@pytest.mark.parametrize("n", [1, 2, 16, 32, 256])
def test_balanced_queues_are_fitted_where_a_little_more_demand_moves_many_connections(n):
    """With 32 connections, steps by the ratio of lengths put all of them at one of two queues."""
    queues = frozenset({"read", "cpu", "net"})
    for seed in range(40 if n < 256 else 5):
        chance = random.Random(f"{n}/{seed}")
        demands = {name: 10 ** chance.uniform(-4, -2) for name in (*queues, "log", "latch")}
        demands |= {"net": demands["cpu"] * chance.uniform(0.95, 1.05)}
        stations = [Station(name, d, name in queues) for name, d in demands.items()]
        lengths = dict(zip(demands, of(stations, n).lengths.tolist(), strict=True))
        made = fitted(lengths, queues, n)
        assert of(made, n).lengths == pytest.approx([*lengths.values()], abs=2e-4)
        assert elasticities(made, n) == pytest.approx(elasticities(stations, n), abs=1e-3)
