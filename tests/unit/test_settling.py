"""What never settles, found beside what does."""

from dataclasses import replace

import numpy as np
import pytest

from mydyno.campaign.designs import Adaptive
from mydyno.campaign.race import Race
from mydyno.stats import Estimator, Method, Rule, compare, undecided
from mydyno.stats.sequential import jumping, moving
from mydyno.stats.steady import NoiseModel
from mydyno_simulate import CLOUD, POPULATION, Machine, Warmup
from mydyno_simulate.play import play

TEXTURE = NoiseModel(0.0, 0.05**2)


def trials(chance, count, jumps=0.0, slope=0.0, bins=40):
    """Return series of noise, each with one jump of its own and a slope they share."""
    made = []
    for _ in range(count):
        at = chance.integers(8, bins - 8)
        step = jumps * chance.choice((-1, 1)) * (np.arange(bins) >= at)
        made.append(step + slope * np.arange(bins) / bins + chance.normal(0, 0.05, bins))
    return made


def test_jumps_at_other_times_are_found_and_noise_is_not():
    found = wrongly = 0
    for seed in range(50):
        chance = np.random.default_rng(seed)
        arms = {f"a{i}": trials(chance, 3) for i in range(8)} | {"bad": trials(chance, 3, 0.2)}
        surely, _ = jumping(arms, TEXTURE)
        found += "bad" in surely
        wrongly += len(set(surely) - {"bad"})
    assert found >= 45
    assert wrongly <= 2


def test_a_step_that_all_trials_share_is_a_warm_up():
    chance = np.random.default_rng(1)
    shared = [one + 0.3 * (np.arange(40) >= 25) for one in trials(chance, 4)]
    assert jumping({"a": shared, "b": trials(chance, 4)}, TEXTURE) == ([], [])


def test_one_trial_gives_no_estimate_of_jumps():
    assert jumping({"a": trials(np.random.default_rng(1), 1, 0.5)}, TEXTURE) == ([], [])
    assert jumping({}, TEXTURE) == ([], [])


@pytest.mark.parametrize(("slope", "wanted"), [(0.0, False), (-0.6, True), (0.6, True)])
def test_a_trial_that_drifts_to_its_end_is_reported(slope, wanted):
    chance = np.random.default_rng(2)
    assert moving(trials(chance, 3, slope=slope), TEXTURE) is wanted
    assert moving([], TEXTURE) is False
    assert moving([np.zeros(3)], TEXTURE) is False


@pytest.mark.statistics
def test_a_race_names_what_never_settles():
    arms = POPULATION.arms(4, 12)
    arms["a12"] = replace(arms["a12"], warmup=Warmup("never", 0.4, 45.0))
    arms["a11"] = replace(arms["a11"], warmup=Warmup("trend", 0.3, 300.0))
    names = tuple(arms)
    rule = Rule("c", "base", {"w": "tps"}, guards={}, method=Method(Estimator.STEADY))
    race = Race(names, "base", ("w",), 8, None, 4, undecided(rule, names), 3)
    outcomes = play(race, Adaptive({"w": "tps"}), Machine(CLOUD, arms, 4))
    words = {row.name: row.verdict for row in compare(outcomes, rule, names).treatments}
    assert {name for name, word in words.items() if word == "no-steady-state"} == {"a11", "a12"}
