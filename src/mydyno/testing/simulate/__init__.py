"""A host with known truth: every second's throughput, with all that misleads people in it."""

from mydyno.testing.simulate.arms import Arm, Grid, Population, Screen
from mydyno.testing.simulate.machine import (
    BARE,
    CLOUD,
    GRID,
    HELD_OUT,
    NOISY,
    POPULATION,
    POPULATIONS,
    SCREEN,
    WORLDS,
    Bucket,
    Machine,
    SimulatedLoad,
    World,
)
from mydyno.testing.simulate.noise import Drift, Neighbour, Noise, Runs, Seconds
from mydyno.testing.simulate.warmups import Warmup

__all__ = [
    "BARE",
    "CLOUD",
    "GRID",
    "HELD_OUT",
    "NOISY",
    "POPULATION",
    "POPULATIONS",
    "SCREEN",
    "WORLDS",
    "Arm",
    "Bucket",
    "Drift",
    "Grid",
    "Machine",
    "Neighbour",
    "Noise",
    "Population",
    "Runs",
    "Screen",
    "Seconds",
    "SimulatedLoad",
    "Warmup",
    "World",
]
