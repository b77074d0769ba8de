"""The simulated host: its declared parameters hold."""

import numpy as np
import pytest

from mydyno.model import Reset, Trial
from mydyno.model.values import levels, percentile_us
from mydyno.stats.estimates import merged
from mydyno_simulate import (
    CLOUD,
    GRID,
    POPULATION,
    SCREEN,
    Arm,
    Bucket,
    Drift,
    Machine,
    Neighbour,
    Noise,
    Population,
    Runs,
    Seconds,
    Warmup,
    World,
    noise,
)
from mydyno_simulate.__main__ import arm_of, report

QUIET = Noise(Seconds(0.0, 0.0), Runs(0.0), Drift(0.0), Neighbour(0.0))
STEADY = Warmup("none")


def trial(number=0, treatment="a", reset=Reset.DATASET):
    return Trial(number, treatment, "w", 0, 1, reset)


def alone(arm, noise=QUIET, seed=1, **more):
    return Machine(World("test", noise, **more), {"a": arm}, seed)


def flat(**more):
    return Arm(warmup=STEADY, saw=(0.0, 60.0), **more)


def test_a_second_has_the_noise_that_was_asked_for():
    noise = Noise(Seconds(0.05, 0.06, 0.9), Runs(0.0), Drift(0.0), Neighbour(0.0))
    logs = alone(flat(), noise).begin(trial()).upto(200_000)
    assert logs.std() == pytest.approx(np.hypot(0.05, 0.06), rel=0.03)
    shared = np.corrcoef(logs[:-1], logs[1:])[0, 1] * logs.var()
    assert shared == pytest.approx(0.9 * 0.06**2, rel=0.05)


@pytest.mark.statistics
def test_starts_differ_as_much_as_was_asked_for():
    for df in (np.inf, 5.0):
        machine = alone(
            flat(), Noise(Seconds(0.0, 0.0), Runs(0.02, df), Drift(0.0), Neighbour(0.0))
        )
        levels = [machine.begin(trial(i)).upto(1)[0] for i in range(4000)]
        assert np.std(levels) == pytest.approx(0.02, rel=0.08)


def test_drift_and_neighbours_have_their_size_and_share():
    drifting = alone(
        flat(), Noise(Seconds(0.0, 0.0), Runs(0.0), Drift(0.03, 100.0), Neighbour(0.0))
    )
    assert drifting.begin(trial()).upto(400_000).std() == pytest.approx(0.03, rel=0.1)
    beside = alone(
        flat(), Noise(Seconds(0.0, 0.0), Runs(0.0), Drift(0.0), Neighbour(0.12, 0.1, 60.0))
    )
    logs = beside.begin(trial()).upto(400_000)
    assert (logs < -0.05).mean() == pytest.approx(0.12, rel=0.05)
    assert logs.min() == pytest.approx(np.log(0.9))


@pytest.mark.parametrize("kind", ["exponential", "two-scale", "stepwise"])
def test_a_warm_up_begins_low_and_ends(kind):
    warmup = Warmup(kind, 0.4, 30.0)
    curve = warmup.curve(0.0, 3600, 5)
    assert np.exp(curve[0]) == pytest.approx(0.6, abs=0.02)
    assert np.exp(curve[-1]) == pytest.approx(1.0, abs=1e-6)
    assert (np.diff(curve) >= -1e-12).all()


def test_steps_come_at_another_time_in_each_start():
    first = [int(np.argmax(np.diff(Warmup("stepwise").curve(0.0, 300, n)) > 0)) for n in range(20)]
    assert len(set(first)) > 5


def test_what_slows_down_begins_high_and_what_never_settles_does_not():
    slow = Warmup("slow-down", 0.25, 60.0).curve(0.0, 2000, 1)
    assert np.exp(slow[0]) == pytest.approx(1.25, abs=0.01)
    assert slow[-1] == pytest.approx(0.0, abs=1e-6)
    late = Warmup("never", 0.3).curve(3000.0, 3000, 1)
    assert late.std() > 0.03
    trend = Warmup("trend", 0.02, 60.0).curve(0.0, 600, 1)
    assert trend[-1] - trend[0] == pytest.approx(np.log(0.98) * 10, rel=0.02)


def test_a_bucket_empties_and_fills():
    bucket = Bucket(full_s=90.0, refill=0.1, floor=1.0)
    machine = alone(flat(), bucket=bucket)
    load = machine.begin(trial())
    logs = load.upto(200)
    assert logs[:100].max() == logs[:100].min() == 0.0
    assert logs[101:].max() == -1.0
    machine.end(load, 200)
    assert machine.left_s == 0.0
    assert (machine.begin(trial(1)).upto(60) == 0.0).sum() in {2, 3}  # what a restart refills


def test_a_hot_switch_keeps_the_process_and_takes_hold_slowly():
    arms = {"a": flat(), "b": flat(effect=0.2, carry_s=5.0)}
    noise = Noise(Seconds(0.0, 0.0), Runs(0.05), Drift(0.0), Neighbour(0.0))
    machine = Machine(World("test", noise), arms, 3)
    cold = machine.begin(trial(0, "a"))
    level = cold.upto(30)[0]
    machine.end(cold, 30)
    hot = machine.begin(trial(1, "b", Reset.NONE)).upto(60)
    assert hot[0] - level == pytest.approx(0.2 * (1 - np.exp(-0.1)), abs=1e-9)
    assert hot[-1] - level == pytest.approx(0.2, abs=1e-4)


def test_the_same_history_brings_the_same_trial():
    def third(first):
        machine = Machine(CLOUD, POPULATION.arms(7, 3), 7)
        for number, seconds in enumerate((first, 80)):
            load = machine.begin(trial(number, f"a0{number + 1}"))
            load.upto(seconds + 13 * number)
            machine.end(load, seconds)
        return machine.begin(trial(2, "a03")).upto(50)

    assert (third(100) == third(100)).all()
    assert not (third(100) == third(300)).all()


def test_machine_time_is_the_restart_and_the_load():
    machine = alone(flat(), restart_s=20.0)
    assert machine.end(machine.begin(trial()), 100) == 120.0
    assert machine.clock_s == 120.0


@pytest.mark.statistics
def test_a_population_has_its_declared_parameters():
    arms = [a for seed in range(200) for n, a in POPULATION.arms(seed, 60).items() if n != "base"]
    effects = np.array([arm.effect for arm in arms])
    assert (np.abs(effects) < 0.01).mean() == pytest.approx(0.40, abs=0.01)
    assert (effects > 0.25).mean() == pytest.approx(0.10, abs=0.01)
    kinds = [arm.warmup.kind for arm in arms]
    assert kinds.count("stepwise") / len(kinds) == pytest.approx(0.2, abs=0.02)
    null = POPULATION.arms(1, 60, null=True)
    assert {arm.effect for arm in null.values()} == {0.0}
    unstable = Population(unstable=0.2).arms(1, 1000)
    assert sum(arm.run_factor > 1 for arm in unstable.values()) == pytest.approx(200, abs=40)


@pytest.mark.statistics
def test_a_grid_interacts_in_the_share_of_seeds_that_was_asked_for():
    def is_additive(seed):
        arms = GRID.arms(seed, POPULATION)
        effect = np.array([arm.effect for arm in arms.values()]).reshape(GRID.levels)
        twice = np.diff(np.diff(effect, axis=0), axis=1)
        rest = [np.diff(np.diff(effect, axis=i), axis=j) for i in range(4) for j in range(i)]
        return all(np.abs(d).max() < 1e-12 for d in [twice, *rest])

    assert next(iter(GRID.arms(1, POPULATION).values())).effect == 0.0
    assert len(GRID.arms(1, POPULATION)) == 60
    interacting = [not is_additive(seed) for seed in range(300)]
    assert np.mean(interacting) == pytest.approx(0.4, abs=0.07)


def test_of_many_settings_few_matter():
    effects = np.abs(SCREEN.effects(3))
    assert (effects >= 0.06).sum() == 3
    assert len(effects) == 19


def test_the_latency_of_many_seconds_is_that_of_all_their_events():
    chance = np.random.default_rng(5)
    logs = np.log([0.5, 1.0, 1.5])
    drawn = [noise.sample(log, 0.1, chance) for log in logs for _ in range(50)]
    events = np.repeat(
        *map(np.concatenate, zip(*((v, n.astype(int)) for v, n in drawn), strict=True))
    )
    found = np.quantile(events, 0.99)
    assert noise.quantile(logs, 0.1, 0.99) == pytest.approx(found, rel=0.01)


def test_as_a_load_it_reports_its_overhead_then_each_second():
    environment = {"SIM_EFFECT": "0.10", "SIM_WARMUP": "none:0:1"}
    machine = Machine(World("test", QUIET), {"a": arm_of(environment)}, 1)
    lines = report(machine, trial(), histograms=True)
    assert next(lines) == {"event": "overhead", "cost_s": 20.0}
    seconds = [next(lines) for _ in range(120)]
    assert [line["t_s"] for line in seconds] == list(range(1, 121))
    assert np.mean([line["tps"] for line in seconds]) == pytest.approx(1100, rel=0.01)
    histogram = merged(line["latency_hist"] for line in seconds)
    median = np.median([line["latency_p99_s"] for line in seconds])
    assert percentile_us(levels(histogram), 99.0) / 1e6 == pytest.approx(median, rel=0.05)


@pytest.mark.parametrize("shape", ["exponential", "odd:1:2", "none:x:1"])
def test_a_warm_up_that_is_none_is_refused(shape):
    with pytest.raises(ValueError, match=r"SIM_WARMUP|could not convert"):
        arm_of({"SIM_WARMUP": shape})
