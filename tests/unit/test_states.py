"""Spent burst credits, other work, steal: disturbed trials are found, and no others."""

from dataclasses import replace

import numpy as np
import pytest

from mydyno.campaign.designs import Adaptive
from mydyno.campaign.race import Race
from mydyno.model import Metric, Outcome, Series, Trial, TrialStatus, Window
from mydyno.report.words import words
from mydyno.stats import Estimator, Method, Rule, undecided
from mydyno.stats.checks import mark_invalid, of_campaign
from mydyno.stats.drift import LoadSeries, of_another_state
from mydyno_simulate import CLOUD, POPULATION, Bucket, Machine, Warmup
from mydyno_simulate.play import play
from worded import compare


def trials(chance, blocks=4, arms=3, bins=15):
    """Return trials without end of arms that differ, in blocks."""
    return [
        LoadSeries(f"a{i % arms}", 300.0 * i, 0.3 * (i % arms) + chance.normal(0, 0.05, bins), 0, i)
        for i in range(blocks * arms)
    ]


def lower(trial, by, since=0):
    return replace(trial, series=trial.series - by * (np.arange(len(trial.series)) >= since))


@pytest.mark.parametrize("by", [0.35, 1.2])
@pytest.mark.parametrize("since", [3, 7, 11])
@pytest.mark.parametrize("at", [2, 5, 9])
def test_a_fall_that_all_share_is_another_state(by, since, at):
    series = trials(np.random.default_rng(1))
    fallen = [*series[:at], lower(series[at], by, since), *(lower(t, by) for t in series[at + 1 :])]
    out = of_another_state(fallen)
    states = {fallen[i].id > at for i in range(len(series)) if fallen[i].id not in out}
    assert len(states) == 1
    assert at in out
    assert f"at {since * 10} s" in words(out[at])


def test_what_falls_by_itself_stays():
    series = trials(np.random.default_rng(2))
    series[4] = lower(series[4], 0.4, 7)
    assert of_another_state(series) == {}


def test_a_fall_in_the_last_trial_is_not_trusted():
    series = trials(np.random.default_rng(3))
    series[-1] = lower(series[-1], 0.4, 7)
    assert list(of_another_state(series)) == [len(series) - 1]


@pytest.mark.parametrize("habit", [set(range(12)), {0, 3, 6, 9}, {2, 5, 8, 11}])
def test_a_cliff_that_every_trial_meets_is_the_loads(habit):
    """All trials fall by themselves, or all of one treatment, the first or the last among them."""
    series = [lower(t, 0.4, 7) if t.id in habit else t for t in trials(np.random.default_rng(4))]
    assert of_another_state(series) == {}


@pytest.mark.parametrize("fallen", [{0}, {11}, {0, 11}, {0, 4, 11}])
def test_a_cliff_at_an_end_that_most_others_do_not_meet_is_the_hosts(fallen):
    series = [lower(t, 0.4, 7) if t.id in fallen else t for t in trials(np.random.default_rng(4))]
    assert set(of_another_state(series)) == fallen & {0, 11}


@pytest.mark.statistics
def test_noise_drift_and_effects_are_no_states():
    for seed in range(200):
        chance = np.random.default_rng(seed)
        drift = np.cumsum(chance.normal(0, 0.02, 12))
        series = [lower(t, d) for t, d in zip(trials(chance), drift, strict=True)]
        assert of_another_state(series) == {}


def test_first_trials_of_the_baseline_alone_may_be_of_another_state():
    chance = np.random.default_rng(5)
    checks = [LoadSeries("a0", 300.0 * i, chance.normal(0, 0.05, 15), 0, 100 + i) for i in range(3)]
    later = [lower(t, 0.5) for t in trials(chance)]
    excluded = of_another_state([*checks, *later])
    assert set(excluded) == {100, 101, 102, 0}
    assert "during this trial or next to it" in words(excluded[0])


@pytest.mark.parametrize("at", [3, 8])
def test_a_trial_in_whose_last_minute_the_state_changed_is_of_neither(at):
    series = trials(np.random.default_rng(6))
    risen = [*series[:at], lower(series[at], -0.5, 10), *(lower(t, -0.5) for t in series[at + 1 :])]
    out = of_another_state(risen)
    assert at in out
    assert len({t.id > at for t in risen if t.id not in out}) == 1


def test_few_trials_and_short_ones_show_no_change_of_state():
    series = trials(np.random.default_rng(4))
    assert of_another_state([]) == {}
    assert of_another_state(series[:2]) == {}
    assert of_another_state([replace(t, series=t.series[:1]) for t in series]) == {}


def test_a_race_does_not_compare_across_states():
    arms = POPULATION.arms(3, 6)
    world = replace(CLOUD, bucket=Bucket(4000.0, 0.0, 0.7))
    names = tuple(arms)
    rule = Rule("c", "base", {"w": "tps"}, guards={}, method=Method(Estimator.STEADY))
    race = Race(names, "base", ("w",), 8, None, 3, undecided(rule, names), 3)
    outcomes = play(race, Adaptive({"w": "tps"}), Machine(world, arms, 3))
    marked = mark_invalid(outcomes, rule)
    load_s = np.cumsum([o.series[0].t_s[-1] for o in outcomes])
    burst = [bool(end_s <= 4000) for end_s in load_s]
    counted = {b for b, o in zip(burst, marked, strict=True) if o.status is TrialStatus.OK}
    assert len(counted) == 1
    assert any(
        "credits" in w for row in compare(outcomes, rule, names).treatments for w in row.warnings
    )
    assert sum(o.machine_time_s for o in marked) == sum(o.machine_time_s for o in outcomes)


def test_a_resumed_campaign_gives_a_trial_the_length_that_it_would_have_had():
    arms = POPULATION.arms(2, 6)
    names = tuple(arms)
    rule = Rule("c", "base", {"w": "tps"}, guards={}, method=Method(Estimator.STEADY))
    race = Race(names, "base", ("w",), 4, None, 3, undecided(rule, names), 3)
    played = play(race, Adaptive({"w": "tps"}), Machine(CLOUD, arms, 3))
    slower = [replace(o, machine_time_s=o.machine_time_s * (1 + n)) for n, o in enumerate(played)]
    going_on = Adaptive({"w": "tps"})
    for number, one in enumerate(slower):
        lengths = going_on.of(one.trial, slower[:number]).lengths
        resumed = Adaptive({"w": "tps"}).of(one.trial, slower[:number]).lengths
        assert (resumed.terms, resumed.looks_s) == (lengths.terms, lengths.looks_s)


def test_a_treatment_that_never_settles_is_not_taken_for_a_state():
    arms = POPULATION.arms(4, 8) | {
        "a08": replace(POPULATION.arms(4, 8)["a08"], warmup=Warmup("never"))
    }
    names = tuple(arms)
    rule = Rule("c", "base", {"w": "tps"}, guards={}, method=Method(Estimator.STEADY))
    race = Race(names, "base", ("w",), 4, None, 4, undecided(rule, names), 3)
    outcomes = play(race, Adaptive({"w": "tps"}), Machine(CLOUD, arms, 4))
    void = [o.trial.treatment for o in mark_invalid(outcomes, rule) if o.status is TrialStatus.VOID]
    assert set(void) <= {"a08"}


def outcome(number, **gauges):
    metrics = [Metric("tps", 100.0, "/s"), *(Metric(n, v, "ratio") for n, v in gauges.items())]
    return Outcome(Trial(number, "base", "w", number, 1), TrialStatus.OK, Window(0, 60), metrics)


RULE = Rule("c", "base", {"w": "tps"}, guards={})


def test_steal_out_of_the_usual_spoils_a_trial():
    some = [outcome(i, cpu_steal_ratio=0.02) for i in range(4)]
    marked = mark_invalid([*some, outcome(4, cpu_steal_ratio=0.12)], RULE)
    assert [o.status for o in marked] == [TrialStatus.OK] * 4 + [TrialStatus.VOID]
    assert "12%" in words(marked[4].finding)


def test_what_is_always_there_spoils_nothing():
    some = [outcome(i, cpu_steal_ratio=0.2, cpu_other_cores=1.0) for i in range(5)]
    assert mark_invalid(some, RULE) == some


def of(treatment, first, *steals):
    made = [outcome(first + i, cpu_steal_ratio=steal) for i, steal in enumerate(steals)]
    return [replace(o, trial=replace(o.trial, treatment=treatment)) for o in made]


def test_steal_in_most_trials_of_one_treatment_is_not_usual_for_it():
    """Seen in a run: two of its three trials met a neighbour: it seemed slower by 23 %."""
    others = of("base", 0, 0.01, 0.0, 0.02)
    unlucky = of("B", 3, 0.0, 0.30, 0.28)
    marked = mark_invalid([*others, *unlucky], RULE)
    assert [o.status for o in marked] == [TrialStatus.OK] * 4 + [TrialStatus.VOID] * 2
    two = mark_invalid([*others, *of("B", 3, 0.0, 0.30)], RULE)
    assert [o.status for o in two] == [TrialStatus.OK] * 4 + [TrialStatus.VOID]
    every = of("B", 3, 0.24, 0.26, 0.25)  # its own doing, as far as anyone can know
    assert mark_invalid([*others, *every], RULE) == [*others, *every]


def test_other_work_spoils_a_trial():
    some = [outcome(i, cpu_other_cores=0.05) for i in range(3)]
    marked = mark_invalid([outcome(9, cpu_other_cores=0.8), *some], RULE)
    assert marked[0].status is TrialStatus.VOID
    assert "used 0.8 cores" in words(marked[0].finding)


def test_too_few_trials_and_too_short_windows_show_nothing_unusual():
    few = [outcome(0, cpu_other_cores=0.0), outcome(1, cpu_other_cores=1.0)]
    assert mark_invalid(few, RULE) == few
    several = [outcome(i, cpu_other_cores=float(i == 3)) for i in range(4)]
    short = [replace(o, window=Window(0.0, 2.0)) for o in several]
    assert mark_invalid(several, RULE) != several
    assert mark_invalid(short, RULE) == short


@pytest.mark.parametrize(("share", "wanted"), [(0.95, True), (0.5, False)])
def test_a_load_that_is_the_limit_is_named(share, wanted):
    found = of_campaign([outcome(i, load_cpu_ratio=share) for i in range(3)], RULE)
    assert [f.code for f in found] == ["load-limit"] * wanted
    assert of_campaign([outcome(i) for i in range(3)], RULE) == []


def long_trial(trial_id, treatment, values):
    ends = tuple(10.0 * (i + 1) for i in range(len(values)))
    series = (Series("tps", "/s", ends, tuple(values)),)
    metrics = (Metric("tps", sum(values) / len(values), "/s"),)
    return Outcome(
        Trial(trial_id, treatment, "w", trial_id // 2, 1),
        TrialStatus.OK,
        Window(0, ends[-1]),
        metrics,
        series=series,
        machine_time_s=150.0,
    )


def bursting(blocks):
    chance = np.random.default_rng(7)
    for i in range(blocks):
        noise = chance.normal(1, 0.02, (2, 12))
        level = np.array([3000.0] * 5 + [1800.0] + [1000.0] * 6)  # the burst ends at 54 s
        yield long_trial(2 * i, "full", level * noise[0])
        yield long_trial(2 * i + 1, "empty", 1000.0 * noise[1])


@pytest.mark.parametrize("blocks", [1, 4])
def test_trials_that_begin_with_credits_are_not_void_and_show_both_plateaus(blocks):
    trials = list(bursting(blocks))
    rule = Rule("c", "empty", {"w": "tps"}, guards={}, bursts={"full"})
    assert all(o.status is TrialStatus.OK for o in mark_invalid(trials, rule))
    (found,) = compare(trials, rule, ["empty", "full"]).plateaus
    assert (found.treatment, found.fell, found.trials) == ("full", blocks, blocks)
    assert found.before == pytest.approx(3000, rel=0.03)
    assert found.after == pytest.approx(1000, rel=0.03)
    assert found.at_s == pytest.approx(54, abs=1.5)
    assert found.work == pytest.approx(10 * (15_000 + 1800 + 6000), rel=0.03)
    assert found.seconds == 120


def test_one_block_without_a_word_of_credits_may_be_the_hosts_fall():
    trials = list(bursting(1))
    rule = Rule("c", "empty", {"w": "tps"}, guards={})
    states = [o.status for o in mark_invalid(trials, rule)]
    assert states == [TrialStatus.VOID, TrialStatus.OK]


def test_credits_that_end_in_the_first_bin_have_both_plateaus():
    """The fall of four bins is found as of two: the step is looked for around it."""
    one = long_trial(0, "full", np.array([2670.6, 500.0, 500.0, 499.9]))
    two = long_trial(1, "empty", np.array([122.3, 117.2, 117.2, 119.3]))
    rule = Rule("c", "empty", {"w": "tps"}, guards={}, bursts={"full"})
    (found,) = compare([one, two], rule, ["empty", "full"]).plateaus
    assert (found.treatment, found.after) == ("full", pytest.approx(500, rel=0.01))


def test_a_queue_that_grows_has_no_plateaus():
    """The latency of an open loop that is behind its rate rises as long as the trial lasts."""
    chance = np.random.default_rng(7)

    def growing(trial_id, name):
        latency = np.linspace(2.0, 60.0, 12) * chance.normal(1, 0.02, 12)
        one = long_trial(trial_id, name, latency)
        (series,) = one.series
        metrics = (Metric("latency_p99_s", 40.0, "s"),)
        return replace(one, series=(replace(series, name="latency_p99_s"),), metrics=metrics)

    trials = [growing(2 * i + n, name) for i in range(3) for n, name in enumerate(("a", "b"))]
    rule = Rule("c", "a", {"w": "latency_p99_s"}, guards={})
    assert compare(trials, rule, ["a", "b"]).plateaus == []
