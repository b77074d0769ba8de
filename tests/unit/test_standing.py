"""Standings of treatments on the simulated host, whose truth is known."""

import math

import numpy as np
import pytest

from mydyno.analyse.standing import Aim, Pressed, learned_from, standings
from mydyno.model import Trial
from mydyno.testing.simulate import BARE, CLOUD, Arm, Machine, Warmup

SECONDS = 200


def campaign(effects, *, world=BARE, seed=1, blocks=6):
    """Return trials in randomised blocks, the baseline twice in each."""
    kinds = ("exponential", "stepwise", "two-scale")
    arms = {
        name: Arm(math.log1p(gain), Warmup(kinds[i % 3], 0.4, 25.0 + 5 * i))
        for i, (name, gain) in enumerate({"base": 0.0, **effects}.items())
    }
    machine, trials = Machine(world, arms, seed), []
    for block in range(blocks):
        chance = np.random.default_rng((seed, block))
        for name in chance.permutation([*arms, "base"]):
            press = machine.begin(Trial(len(trials), str(name), "w", block, 0))
            series = press.upto(SECONDS).reshape(-1, 10).mean(axis=1)
            trials.append(Pressed(str(name), machine.clock_s + SECONDS / 2, series))
            machine.end(press, SECONDS)
    return trials


def test_large_effects_are_called_and_covered():
    effects = {"better": 0.25, "worse": -0.20, "same": 0.0}
    found = standings(campaign(effects, blocks=8), "base", list(effects), Aim(margin=0.05))
    assert found["better"].verdict == "adopt"
    assert found["worse"].verdict == "reject"
    assert found["same"].verdict != "adopt"  # "reject" is: not worth the margin
    for name, gain in effects.items():
        assert found[name].low < math.log1p(gain) < found[name].high


def test_nothing_is_adopted_where_nothing_is_better():
    names = [f"a{i}" for i in range(6)]
    adopted = 0
    for seed in range(12):
        trials = campaign(dict.fromkeys(names, 0.0), world=CLOUD, seed=seed, blocks=4)
        found = standings(trials, "base", names, Aim())
        adopted += any(s.verdict == "adopt" for s in found.values())
    assert adopted <= 1


def test_more_treatments_make_a_claim_harder():
    trials = campaign({"a": 0.05, "b": 0.0})
    few = standings(trials, "base", ["a"], Aim())["a"]
    many = standings(trials, "base", ["a", *(f"x{i}" for i in range(59))], Aim())["a"]
    assert (few.gain, few.low, few.high) == pytest.approx((many.gain, many.low, many.high))
    assert many.surely < few.surely


def test_too_few_trials_have_no_standing():
    trials = campaign({"a": 0.1}, blocks=1)
    assert standings([], "base", ["a"], Aim()) == {}
    assert standings(trials[:2], "base", ["a"], Aim()) == {}
    only = [t for t in trials if t.treatment == "a"]
    assert standings(only, "base", ["a"], Aim()) == {}


def test_what_is_learned_does_not_change_with_every_trial():
    series = [t.series for t in campaign({"a": 0.1}, blocks=7)]
    assert learned_from(series[:17]).prior.missing == learned_from(series[:20]).prior.missing
