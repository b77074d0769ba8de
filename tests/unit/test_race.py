"""The race: who runs in which block, as a function of what has finished."""

from collections import Counter

from mydyno.campaign.race import Race
from mydyno.model import Outcome, TrialStatus, Window

NAMES = ("base", *(f"t{i}" for i in range(9)))


def race(undecided, **more):
    asked = {"blocks": 5, "budget_s": None, "seed": 3, "workloads": ("w",), **more}
    return Race(NAMES, "base", undecided=undecided, **asked)


def all_cells(history):
    return {("w", name) for name in NAMES}


def played(design, most=1000):
    history = []
    while (trial := design.next(history)) and len(history) < most:
        history.append(Outcome(trial, TrialStatus.OK, Window(0, 1), machine_time_s=100.0))
    return history


def blocks(history):
    found = {}
    for outcome in history:
        found.setdefault(outcome.trial.block, []).append(outcome.trial.treatment)
    return found


def test_each_block_has_every_treatment_once_and_the_baseline_among_them():
    found = blocks(played(race(all_cells)))
    assert len(found) == 5
    for order in found.values():
        counts = Counter(order)
        assert counts.pop("base") == 3
        assert counts == Counter(NAMES[1:])
    assert len({tuple(order) for order in found.values()}) == 5


def test_a_decided_treatment_runs_no_more_and_the_race_ends():
    def undecided(history):
        block = history[-1].trial.block
        return {("w", name) for name in NAMES[1 : max(1, 8 - 3 * block)]}

    found = blocks(played(race(undecided)))
    assert set(found[1]) == set(NAMES)
    assert set(found[2]) == {"base", "t0", "t1", "t2", "t3"}
    assert set(found[3]) == {"base", "t0"}
    assert list(found) == [0, 1, 2, 3]


def test_two_blocks_are_run_before_anything_is_decided():
    assert set(blocks(played(race(lambda history: ())))) == {0, 1}


def test_the_next_trial_depends_on_the_history_alone():
    history = played(race(all_cells))
    asked = []
    again = race(lambda before: asked.append(len(before)) or all_cells(before))
    for n in (17, 3, 41, 17):
        assert again.next(history[:n]) == race(all_cells).next(history[:n]) == history[n].trial
    assert len(asked) == len(set(asked))


def test_the_budget_ends_it_between_blocks():
    assert len(played(race(all_cells, blocks=None, budget_s=3600.0))) == 36


def test_workloads_keep_their_treatments_together():
    found = blocks(played(race(lambda h: {("v", "t1")}, workloads=("v", "w"), blocks=3)))
    assert Counter(found[0])["base"] == 6
    assert Counter(found[2]) == {"t1": 1, "base": 1}
