"""The best of several is corrected for selection bias."""

from dataclasses import replace
from math import exp

import numpy as np
import pytest

from mydyno.campaign.designs import Adaptive
from mydyno.campaign.race import Race
from mydyno.stats import Estimator, Goal, Method, Rule, compare, undecided
from mydyno.stats.effects import Effect
from mydyno.stats.sequential import shrink_best
from mydyno_simulate import BARE, Arm, Machine
from mydyno_simulate.play import play


def effects(*logs, se=0.02):
    return {f"a{i}": Effect(log, se, 3.0, 4) for i, log in enumerate(logs)}


@pytest.mark.parametrize(
    ("lead", "bias"),
    [(0.04, 0.005), (0.02, 0.01), (0.01, 0.005), (0.4, 0.0005), (0.0, 0.0)],
)
def test_a_lead_is_shrunk_by_its_error(lead, bias):
    shrunk = shrink_best(effects(0.10, 0.10 + lead, 0.02), lambda _a, _b: 0.02)
    found = {name: round(e.bias, 9) for name, e in shrunk.items()}
    assert found == {"a0": 0.0, "a1": pytest.approx(bias), "a2": 0.0}


def test_the_interval_stays_and_holds_the_estimate():
    before = effects(0.10, 0.11)
    after = shrink_best(before, lambda _a, _b: 0.03)
    ratio, low, high = after["a1"].interval
    assert (low, high) == before["a1"].interval[1:]
    assert low < ratio < before["a1"].interval[0]
    assert ratio == pytest.approx(exp(0.105))
    assert after["a1"].inverse().interval[0] == pytest.approx(1 / ratio)


@pytest.mark.parametrize("which", [effects(), effects(0.1)])
def test_an_effect_that_was_not_chosen_from_several_is_not_shrunk(which):
    assert shrink_best(which, lambda _a, _b: 0.02) == which


def errors(apart):
    """Return the mean errors of the better of two, plain and shrunk."""
    chance = np.random.default_rng(1)
    truth = {"a0": 0.1, "a1": 0.1 + apart}
    plain, shrunk = [], []
    for _ in range(4000):
        seen = effects(*(chance.normal(t, 0.02) for t in truth.values()))
        best = max(seen, key=lambda name: seen[name].log_ratio)
        plain.append(seen[best].log_ratio - truth[best])
        shrunk.append(plain[-1] - shrink_best(seen, lambda _a, _b: 0.02 * 2**0.5)[best].bias)
    return np.array(plain), np.array(shrunk)


@pytest.mark.statistics
def test_of_two_alike_the_better_is_overstated_by_a_third_and_known_better():
    plain, shrunk = errors(0.0)
    larger_of_two_normals = 0.02 / np.pi**0.5
    assert plain.mean() == pytest.approx(larger_of_two_normals, rel=0.05)
    assert 0 < shrunk.mean() < 0.4 * plain.mean()
    assert (shrunk**2).mean() < 0.75 * (plain**2).mean()


@pytest.mark.statistics
@pytest.mark.parametrize("apart", [0.03, 0.06, 0.1, 0.3])
def test_a_clear_lead_is_understated_by_a_quarter_of_its_error_at_most(apart):
    _, shrunk = errors(apart)
    assert -0.23 * 0.02 * 2**0.5 < shrunk.mean() < 0.1 * 0.02 * 2**0.5


@pytest.fixture(scope="module")
def raced():
    """Return a race of two treatments that both win, and are alike."""
    arms = {"base": Arm(0.0), "one": Arm(0.30), "two": Arm(0.31)}
    names = tuple(arms)
    race = Race(names, "base", ("w",), 6, None, 3, lambda _: {("w", n) for n in names}, 3)
    return play(race, Adaptive({"w": "tps"}), Machine(BARE, arms, 3)), names


RULE = Rule("c", "base", {"w": "tps"}, guards={}, method=Method(Estimator.STEADY))


def test_effects_are_shrunk_only_where_the_best_is_asked_for(raced):
    outcomes, names = raced
    plain = compare(outcomes, RULE, names)
    best = compare(outcomes, replace(RULE, method=Method(Estimator.STEADY, Goal.BEST)), names)
    assert [r.verdict for r in best.treatments] == ["baseline", "adopt", "adopt"]
    assert best.winner == plain.winner
    for shrunk, before in zip(best.treatments[1:], plain.treatments[1:], strict=True):
        assert (shrunk.effect.low, shrunk.effect.high) == (before.effect.low, before.effect.high)
        assert (shrunk.effect.ratio < before.effect.ratio) == (shrunk.name == best.winner)
        assert shrunk.effect.low < shrunk.effect.ratio <= before.effect.ratio


def test_while_the_best_is_asked_for_rivals_run_on(raced):
    outcomes, names = raced
    assert undecided(RULE, names)(outcomes) == set()
    assert undecided(replace(RULE, method=Method(Estimator.STEADY, Goal.BEST)), names)(
        outcomes
    ) == {("w", "one"), ("w", "two")}
