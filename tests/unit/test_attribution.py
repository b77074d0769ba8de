"""Main effects and interactions, on campaigns whose truth is known."""

from itertools import product
from math import exp, log

import numpy as np
import pytest

from mydyno.model import Metric, Outcome, Series, Trial, TrialStatus, Window
from mydyno.stats import Estimator, Method, Rule
from mydyno.stats.factors import attribute
from worded import compare

RULE = Rule("c", "a=0,b=0,c=0", {"w": "tps"}, guards={}, method=Method(Estimator.WINDOWS))
LEVELS = {"a": "01", "b": "01", "c": "012"}
CELLS = {
    ",".join(f"{f}={v}" for f, v in zip(LEVELS, cell, strict=True)): dict(
        zip(LEVELS, cell, strict=True)
    )
    for cell in product(*LEVELS.values())
}
MAINS = {("a", "1"): 0.10, ("b", "1"): 0.02, ("c", "1"): -0.05, ("c", "2"): 0.04}


def campaign(seed, *, pair=0.0, noise=0.02, blocks=3, response="tps"):
    """Return trials of all cells in blocks; `pair` is what a=1 and b=1 do together."""
    chance = np.random.default_rng(seed)
    outcomes = []
    for block in range(blocks):
        drift = chance.normal(0, 0.03)
        for name in chance.permutation(list(CELLS)):
            cell = CELLS[str(name)]
            effect = sum(MAINS.get((f, v), 0.0) for f, v in cell.items())
            effect += pair * (cell["a"] == cell["b"] == "1") + drift + chance.normal(0, noise)
            value = 1000 * exp(effect)
            trial = Trial(len(outcomes), str(name), "w", block, 0)
            series = Series(response, "/s", (10.0,), (value,))
            metrics = (Metric(response, value, "/s"),)
            outcomes.append(
                Outcome(trial, TrialStatus.OK, Window(0, 10), metrics, (series,), 300.0)
            )
    return outcomes


@pytest.mark.statistics
def test_intervals_of_main_effects_cover_at_their_nominal_rate():
    inside = []
    for seed in range(60):
        parts, _ = attribute(campaign(seed), RULE, "w", CELLS)
        for part in parts:
            truth = exp(MAINS[part.factor, part.level])
            inside.append(part.effect.low <= truth <= part.effect.high)
    assert len(inside) == 60 * 4
    assert np.mean(inside) == pytest.approx(0.95, abs=0.045)


@pytest.mark.statistics
def test_an_interaction_is_reported_where_there_is_one():
    found = [attribute(campaign(seed, pair=0.12), RULE, "w", CELLS)[1] for seed in range(20)]
    assert sum(any(set(t.levels) == {"a", "b"} for t in one) for one in found) >= 19
    (both,) = [t for t in found[0] if set(t.levels) == {"a", "b"}]  # of two levels each: once
    assert both.levels == {"a": "1", "b": "1"}
    assert both.effect.ratio == pytest.approx(exp(0.03), abs=0.015)  # a quarter, beyond the means
    silent = [attribute(campaign(seed), RULE, "w", CELLS)[1] for seed in range(40)]
    assert sum(bool(one) for one in silent) <= 6


def test_a_lower_latency_is_not_turned_round():
    rule = Rule(
        "c", RULE.baseline, {"w": "latency_p99_s"}, guards={}, method=Method(Estimator.WINDOWS)
    )
    parts, _ = attribute(campaign(1, response="latency_p99_s"), rule, "w", CELLS)
    found = {(p.factor, p.level): log(p.effect.ratio) for p in parts}
    assert found["a", "1"] == pytest.approx(0.10, abs=0.03)


def test_too_few_trials_give_no_estimate():
    assert attribute(campaign(1)[:5], RULE, "w", CELLS) == ([], [])
    assert attribute([], RULE, "w", CELLS) == ([], [])


def test_a_few_changes_that_give_most_are_named():
    outcomes = campaign(3, noise=0.01, blocks=6)
    found = compare(outcomes, RULE, list(CELLS), CELLS)
    assert found.winner == "a=1,b=1,c=2"
    assert found.share.startswith("2 of 3 changes give 8")
    assert found.share.endswith("% of a=1,b=1,c=2's gain: a, c.")
    assert {(p.factor, p.against) for p in found.parts} == {("a", "0"), ("b", "0"), ("c", "0")}
