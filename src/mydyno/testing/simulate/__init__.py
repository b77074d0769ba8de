"""A host with known truth: every second's throughput, with all that misleads people in it."""

from mydyno.testing.simulate.arms import Arm, Grid, Population, Screen
from mydyno.testing.simulate.credits import Bucket
from mydyno.testing.simulate.machine import Machine, Press, World
from mydyno.testing.simulate.noise import Drift, Neighbour, Noise, Runs, Seconds
from mydyno.testing.simulate.warmups import Warmup
from mydyno.testing.simulate.worlds import (
    BARE,
    CLOUD,
    GRID,
    HELD_OUT,
    NOISY,
    POPULATION,
    POPULATIONS,
    SCREEN,
    WORLDS,
)

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
    "Press",
    "Runs",
    "Screen",
    "Seconds",
    "Warmup",
    "World",
]
