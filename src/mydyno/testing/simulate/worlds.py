"""The worlds that decisions are tried in; fixed before any result was looked at (METHOD 5.4)."""

from mydyno.testing.simulate.arms import Grid, Population, Screen
from mydyno.testing.simulate.machine import World
from mydyno.testing.simulate.noise import Drift, Neighbour, Noise, Runs, Seconds

BARE = World("bare", Noise(Seconds(), Runs(), Drift(0.005), Neighbour(0.001)))
CLOUD = World("cloud", Noise(Seconds(), Runs(), Drift(0.03), Neighbour(0.05)))
NOISY = World("noisy", Noise(Seconds(), Runs(), Drift(0.05), Neighbour(0.12)))
WORLDS = {world.name: world for world in (BARE, CLOUD, NOISY)}

POPULATION = Population()
GRID = Grid()
SCREEN = Screen()
