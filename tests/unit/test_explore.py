"""Exploring a grid on the simulated host, whose best cell is known."""

import numpy as np
import pytest

from mydyno.model import Trial
from mydyno.stats.drift import LoadSeries
from mydyno.stats.surface import CellGrid, Explorer
from mydyno_simulate import BARE, GRID, POPULATION, Machine

SECONDS = 250


@pytest.fixture(scope="module")
def campaign():
    """Return an explorer, its trials of a 60-cell grid, and each cell's true effect."""
    arms = {"".join(map(str, cell)): arm for cell, arm in GRID.arms(2, POPULATION).items()}
    names = list(arms)
    explorer = Explorer(CellGrid(np.array([list(map(int, n)) for n in names])), names, 2)
    machine, trials = Machine(BARE, arms, 2), []
    while len(trials) < 45:
        name = explorer.next_cell(trials)
        load = machine.begin(Trial(len(trials), name, "w", 0, 0))
        series = load.upto(SECONDS).reshape(-1, 10).mean(axis=1)
        trials.append(LoadSeries(name, machine.clock_s + SECONDS / 2, series))
        machine.end(load, SECONDS)
    return explorer, trials, {name: arm.effect for name, arm in arms.items()}


def test_a_fraction_of_the_grid_finds_a_cell_near_the_best(campaign):
    explorer, trials, truth = campaign
    finalists = explorer.finalists(trials)
    assert len(set(finalists)) == 3
    assert max(truth[name] for name in finalists) >= max(truth.values()) - 0.03
    assert len({t.treatment for t in trials}) < 60


def test_the_next_cell_depends_on_the_trials_alone(campaign):
    explorer, trials, _ = campaign
    fresh = Explorer(explorer.grid, explorer.names, explorer.seed)
    for n in (31, 12, 5):
        assert fresh.next_cell(trials[:n]) == trials[n].treatment


def test_after_some_trials_it_looks_where_the_best_may_be(campaign):
    _, trials, truth = campaign
    early = np.mean([truth[t.treatment] for t in trials[:12]])
    late = np.mean([truth[t.treatment] for t in trials[-12:]])
    assert late > early
