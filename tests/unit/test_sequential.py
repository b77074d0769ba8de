"""Races on the simulated host, whose truth is known: lengths, effects, verdicts."""

import math
from dataclasses import replace

import numpy as np
import pytest

from mydyno.campaign.designs import Adaptive, Fixed
from mydyno.campaign.race import Race
from mydyno.model import Metric, Outcome, Series, TrialStatus
from mydyno.stats import Estimator, Method, Rule, undecided
from mydyno.stats.sequential import error_shares, learn_from, load_series, measure
from mydyno_simulate import BARE, CLOUD, Arm, Machine, Warmup
from mydyno_simulate.noise import Drift, Neighbour, Noise, Runs, Seconds
from mydyno_simulate.play import play
from worded import compare

KINDS = ("exponential", "stepwise", "two-scale")
RULE = Rule("c", "base", {"w": "tps"}, margin=0.05, guards={}, method=Method(Estimator.STEADY))


def arms_of(effects):
    """Return arms whose warm-ups differ, by name."""
    return {
        name: Arm(math.log1p(gain), Warmup(KINDS[i % 3], 0.4, 25.0 + 5 * i))
        for i, (name, gain) in enumerate({"base": 0.0, **effects}.items())
    }


def raced(effects, *, world=BARE, seed=1, blocks=6, **more):
    """Return the outcomes of a race; `more` are its rule, its stops, its arms."""
    arms, rule, stops = (
        more.get("arms") or arms_of(effects),
        more.get("rule", RULE),
        more.get("stops"),
    )
    names = tuple(arms)
    race = Race(names, "base", ("w",), blocks, None, seed, undecided(rule, names), checks=3)
    return play(race, stops or Adaptive({"w": "tps"}), Machine(world, arms, seed))


def verdicts(outcomes, rule=RULE):
    names = dict.fromkeys(o.trial.treatment for o in outcomes)
    return {row.name: row for row in compare(outcomes, rule, list(names)).treatments}


def test_large_effects_are_called_covered_and_leave_the_race():
    effects = {"better": 0.25, "worse": -0.20, "same": 0.0}
    outcomes = raced(effects, blocks=8)
    found = verdicts(outcomes)
    assert found["better"].verdict == "adopt"
    assert found["worse"].verdict == "reject"
    assert found["same"].verdict != "adopt"  # "reject" is: not worth the margin
    for name, gain in effects.items():
        assert found[name].effect.low < 1 + gain < found[name].effect.high
    assert found["better"].trials < 8


@pytest.mark.statistics
def test_nothing_is_adopted_where_nothing_is_better():
    names = [f"a{i}" for i in range(6)]
    adopted = 0
    for seed in range(10):
        found = verdicts(raced(dict.fromkeys(names, 0.0), world=CLOUD, seed=seed, blocks=4))
        adopted += any(row.verdict == "adopt" for row in found.values())
    assert adopted <= 1


def test_more_treatments_make_a_claim_harder():
    outcomes = raced({"a": 0.05, "b": 0.0}, blocks=5)
    few = measure(outcomes, RULE, "w").effects["a"]
    again = [
        replace(o, trial=replace(o.trial, treatment=f"x{o.trial.id}"))
        for o in outcomes
        if o.trial.treatment == "b"
    ]
    many = measure([*outcomes, *again], RULE, "w").effects["a"]
    assert many.log_ratio == pytest.approx(few.log_ratio, abs=0.02)
    assert many.simultaneous / many.critical > few.simultaneous / few.critical


def test_too_few_trials_have_no_effect():
    outcomes = raced({"a": 0.1}, blocks=2)
    assert measure([], RULE, "w").effects == {}
    assert measure(outcomes[:2], RULE, "w").effects == {}
    only = [o for o in outcomes if o.trial.treatment == "a"]
    assert measure(only, RULE, "w").effects == {}


def test_what_is_learned_does_not_change_with_every_trial():
    series = [t.series for t in load_series(raced({"a": 0.1}, blocks=7), "w", "tps")]
    assert learn_from(series[:9]).prior.missing == learn_from(series[:15]).prior.missing


def test_a_lower_latency_is_the_gain():
    """The inverse of a throughput, called a latency, gets the inverse effects and its verdicts."""
    outcomes = raced({"better": 0.25, "worse": -0.20}, blocks=8)

    def inverted(outcome):
        latencies = outcome.series[0]
        series = Series("latency_p99_s", "s", latencies.t_s, tuple(1 / v for v in latencies.values))
        metrics = [Metric("latency_p99_s", 1 / outcome.metrics[0].value, "s")]
        return replace(outcome, metrics=metrics, series=(series,))

    rule = replace(RULE, responses={"w": "latency_p99_s"})
    found, plain = verdicts([inverted(o) for o in outcomes], rule), verdicts(outcomes)
    for name in ("better", "worse"):
        assert found[name].verdict == plain[name].verdict
        assert found[name].effect.ratio == pytest.approx(1 / plain[name].effect.ratio)
        assert found[name].effect.low == pytest.approx(1 / plain[name].effect.high)


def test_a_race_of_fixed_trials_is_judged_by_their_windows():
    rule = replace(RULE, method=Method(Estimator.WINDOWS))
    outcomes = raced({"better": 0.3, "same": 0.0}, rule=rule, stops=Fixed(200.0, 100.0))
    assert {o.window.end_s for o in outcomes} == {300.0}
    assert verdicts(outcomes, rule)["better"].verdict == "adopt"


def test_a_guard_that_is_broken_rejects():
    arms = arms_of({"better": 0.25})
    arms["better"] = replace(arms["better"], tail=0.6)
    rule = replace(RULE, guards={"latency_p99_s": 0.10})
    names = tuple(arms)
    race = Race(names, "base", ("w",), 6, None, 1, undecided(rule, names), checks=3)
    outcomes = play(race, Adaptive({"w": "tps"}), Machine(BARE, arms, 1), tails=True)
    row = verdicts(outcomes, rule)["better"]
    assert row.verdict == "reject"
    assert row.guards["latency_p99_s"].low > 1


def test_trials_that_failed_are_left_out():
    outcomes = raced({"better": 0.3, "same": 0.0}, blocks=6)
    broken = [
        replace(o, status=TrialStatus.FAILED, series=(), metrics=(), error="no")
        if o.trial.id in {4, 7}
        else o
        for o in outcomes
    ]
    found = verdicts(broken)
    assert any("failed: no" in warning for row in found.values() for warning in row.warnings)
    assert sum(row.trials for row in found.values()) == len(outcomes) - 2


def test_quick_warm_ups_make_short_trials_and_slow_ones_long():
    def lengths(tau_s):
        arms = {n: Arm(0.0, Warmup("exponential", 0.4, tau_s)) for n in ("base", "a", "b")}
        outcomes = raced({}, arms=arms, blocks=8)
        return [o.window.end_s for o in outcomes[8:]]

    quick, slow = lengths(5.0), lengths(90.0)
    assert np.median(quick) < 0.8 * np.median(slow)
    assert max(slow) <= 900


def test_a_smaller_bias_is_waited_for():
    def left(bias):
        arms = {n: Arm(0.0, Warmup("exponential", 0.1, 90.0)) for n in ("base", "a", "b")}
        outcomes = raced({}, arms=arms, blocks=8, stops=Adaptive({"w": "tps"}, bias=bias))
        ends = [o.window.end_s for o in outcomes]
        latencies = [abs(arms["a"].warmup.bias(end - 10, end, 1)) for end in ends]
        return np.mean(latencies[:8]), np.mean(latencies[8:])

    first, later = left(0.002)
    assert first < 0.002 < left(None)[0]
    assert later < 0.002 < left(None)[1]


def test_the_window_begins_behind_the_warm_up():
    arms = {n: Arm(0.0, Warmup("stepwise", 0.4, 30.0)) for n in ("base", "a")}
    outcomes = raced({}, arms=arms, blocks=5)
    late = outcomes[6:]
    assert all(o.window.start_s >= 80 for o in late)
    level = [o.metrics[0].value for o in late]
    assert np.mean(level) == pytest.approx(1000, rel=0.04)


def test_a_resumed_race_runs_the_same_trials_as_an_uninterrupted_one():
    """The next trial and its lengths after any history are those of the race that made it."""
    effects = {"a": 0.1, "b": 0.0, "c": -0.1}
    campaign = raced(effects, blocks=4)
    names = ("base", *effects)
    for n in range(0, len(campaign), 3):
        race = Race(names, "base", ("w",), 4, None, 1, undecided(RULE, names), checks=3)
        fresh = Adaptive({"w": "tps"})
        trial = race.next(campaign[:n])
        assert trial == campaign[n].trial
        before = Adaptive({"w": "tps"})
        for k in range(n):
            before.of(campaign[k].trial, campaign[:k])
        looks = [stops.of(trial, campaign[:n]).lengths.looks_s for stops in (fresh, before)]
        assert looks[0] == looks[1]


def test_an_outcome_without_a_series_gives_no_evidence():
    outcomes = raced({"a": 0.1}, blocks=3)
    bare = [Outcome(o.trial, o.status, o.window, o.metrics, (), o.machine_time_s) for o in outcomes]
    assert measure(bare, RULE, "w").effects == {}


def test_each_part_of_the_error_is_largest_where_it_is_there():
    """A wrong part would send a user to longer trials where more of them are needed."""
    quiet = Seconds(0.01, 0.01)
    worlds = {
        "starts": Noise(quiet, Runs(0.05), Drift(0.0), Neighbour(0.0)),
        "drift": Noise(quiet, Runs(0.003), Drift(0.10), Neighbour(0.0)),
        "seconds": Noise(Seconds(0.10, 0.12), Runs(0.0), Drift(0.0), Neighbour(0.0)),
    }
    arms = {name: Arm() for name in ("base", "a", "b", "c", "d", "e")}
    found = {}
    for name, noise in worlds.items():
        outcomes = raced({}, arms=arms, world=replace(CLOUD, noise=noise), blocks=8)
        found[name] = error_shares(outcomes, RULE, "w")
        assert sum(found[name].values()) == pytest.approx(1)
    for part in worlds:
        assert max(found, key=lambda name, part=part: found[name][part]) == part, found
        assert found[part][part] > 0.3, found
    assert error_shares(outcomes[:3], RULE, "w") == {}
