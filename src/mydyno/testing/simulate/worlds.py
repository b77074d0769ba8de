"""The worlds that decisions are tried in; fixed before any result was looked at (METHOD 5.4)."""

from mydyno.testing.simulate.arms import Grid, Population, Screen
from mydyno.testing.simulate.machine import World
from mydyno.testing.simulate.noise import Drift, Neighbour, Noise, Runs, Seconds

BARE = World("bare", Noise(Seconds(), Runs(), Drift(0.005), Neighbour(0.001)))
CLOUD = World("cloud", Noise(Seconds(), Runs(), Drift(0.03), Neighbour(0.05)))
NOISY = World("noisy", Noise(Seconds(), Runs(), Drift(0.05), Neighbour(0.12)))

# Written when the method was done, of what it was not made for: heavy tails, starts that differ
# more, longer memory, deeper neighbours, warm-ups of a form that no fitted shape has.
HELD_OUT = World(
    "held-out",
    Noise(
        Seconds(0.04, 0.05, 0.95), Runs(0.02, 4.0), Drift(0.04, 3600.0), Neighbour(0.08, 0.2, 60.0)
    ),
    restart_s=30.0,
)
WORLDS = {world.name: world for world in (BARE, CLOUD, NOISY, HELD_OUT)}

POPULATION = Population()
POPULATIONS = {
    HELD_OUT.name: Population(
        warmups={"none": 0.2, "exponential": 0.2, "two-scale": 0.2, "slow-down": 0.2, "power": 0.2},
        tau_s=(10.0, 120.0),
        unstable=0.1,
    )
}
"""The populations of worlds that have one of their own."""
GRID = Grid()
SCREEN = Screen()
