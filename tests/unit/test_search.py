"""The search over a grid on the simulated host, whose best cell is known."""

import math

import pytest

from mydyno.campaign.designs import Adaptive
from mydyno.campaign.search import Search
from mydyno.model import TrialStatus
from mydyno.stats import Estimator, Method, Rule, compare, undecided
from mydyno_simulate import CLOUD, GRID, POPULATION, Machine
from mydyno_simulate.play import play

BUDGET_S = 60 * 360.0
CELLS = {"".join(map(str, cell)): cell for cell in GRID.arms(1, POPULATION)}
RULE = Rule(
    "c", "0000", {"w": "tps"}, guards={}, method=Method(Estimator.STEADY, proving_from=1)
)  # fmt: skip


def design():
    return Search(
        CELLS, "0000", "w", "tps", None, BUDGET_S, 5, undecided(RULE, list(CELLS))
    )  # fmt: skip


def stops():
    return Adaptive({"w": "tps"}, Search.most_s(60, BUDGET_S))


@pytest.fixture(scope="module")
def campaign():
    """Return the true effects of a grid's cells and the outcomes of a search over it."""
    arms = {"".join(map(str, cell)): arm for cell, arm in GRID.arms(3, POPULATION).items()}
    outcomes = play(design(), stops(), Machine(CLOUD, arms, 3))
    return {name: arm.effect for name, arm in arms.items()}, outcomes


def test_a_tenth_of_the_time_finds_a_cell_near_the_best(campaign):
    truth, outcomes = campaign
    found = compare(outcomes, RULE, list(CELLS))
    assert truth[found.winner] >= max(truth.values()) - math.log(1.03)
    assert found.machine_time_s <= 0.1 * 60 * 3600


def test_only_finalists_are_claimed_and_only_on_fresh_trials(campaign):
    _, outcomes = campaign
    looked = design().explored(outcomes)
    assert {o.trial.block for o in outcomes[:looked]} == {0}
    assert all(o.trial.block > 0 for o in outcomes[looked:])
    rows = {row.name: row for row in compare(outcomes, RULE, list(CELLS)).treatments}
    finalists = {o.trial.treatment for o in outcomes[looked:]} - {"0000"}
    assert len(finalists) <= 3
    assert {name for name, row in rows.items() if row.effect} == finalists
    fresh = [o.trial.treatment for o in outcomes[looked:] if o.status is TrialStatus.OK]
    assert {name: rows[name].trials for name in finalists} == {n: fresh.count(n) for n in finalists}
    assert all(row.verdict in {"inconclusive", "baseline"} or name in finalists
               for name, row in rows.items())  # fmt: skip


def test_the_next_trial_depends_on_the_history_alone(campaign):
    _, outcomes = campaign
    fresh = design()
    for n in (30, len(outcomes) - 2, 12, 0):
        assert fresh.next(outcomes[:n]) == outcomes[n].trial
    assert fresh.next(outcomes) is None
    assert [o.trial.id for o in outcomes] == list(range(len(outcomes)))
