"""A host with known truth: every second's throughput, with all that misleads people in it."""

from mydyno_simulate.arms import Arm, Grid, Population, Screen
from mydyno_simulate.machine import (
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
from mydyno_simulate.noise import Drift, Neighbour, Noise, Runs, Seconds
from mydyno_simulate.warmups import Warmup

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
