"""Designs are pure: the same history gives the same trial, and every cell its turn."""

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mydyno.campaign.blocks import Blocks
from mydyno.model import Outcome, Reset, Trial, TrialStatus, Window


def done(trial: Trial, seconds: float = 40.0) -> Outcome:
    return Outcome(trial, TrialStatus.OK, Window(0, 1), machine_time_s=seconds)


def play(design: Blocks, seconds: float = 40.0) -> list[Trial]:
    history: list[Outcome] = []
    while trial := design.next(history):
        assert trial == design.next(list(history))
        history.append(done(trial, seconds))
    return [o.trial for o in history]


@given(st.integers(1, 5), st.integers(1, 3), st.integers(1, 6), st.integers(0, 10**6))
def test_every_block_holds_every_cell_once(treatments, workloads, blocks, seed):
    names = tuple(f"t{i}" for i in range(treatments))
    cells = tuple(f"w{i}" for i in range(workloads))
    trials = play(Blocks(names, cells, blocks, None, seed))
    assert [t.id for t in trials] == list(range(treatments * workloads * blocks))
    for block in range(blocks):
        mine = Counter((t.treatment, t.workload) for t in trials if t.block == block)
        assert mine == Counter({(n, c): 1 for n in names for c in cells})


def test_the_order_differs_between_blocks_and_seeds():
    names = tuple("ABCDEF")
    orders = set()
    for seed in range(5):
        trials = play(Blocks(names, ("w",), 4, None, seed))
        orders |= {tuple(t.treatment for t in trials if t.block == b) for b in range(4)}
    assert len(orders) > 15


def test_a_block_shares_one_seed():
    trials = play(Blocks(("A", "B"), ("w",), 3, None, 10))
    assert [t.seed for t in trials] == [10, 10, 11, 11, 12, 12]


def test_on_a_running_server_no_trial_reads_the_rows_of_another():
    trials = play(Blocks(("a", "b"), ("w",), 3, None, 10, Reset.NONE))
    assert [t.seed for t in trials] == [10, 11, 12, 13, 14, 15]


def test_the_budget_ends_it_between_blocks():
    trials = play(Blocks(("A", "B"), ("w",), None, 300.0, 1))
    assert len(trials) == 6  # three blocks of 80 s; a fourth would end at 320 s
    assert len(play(Blocks(("A", "B"), ("w",), 2, 300.0, 1))) == 4
    assert len(play(Blocks(("A", "B"), ("w",), None, 10.0, 1))) == 1  # one trial is always begun


def voids(*ids):
    """Return what marks the trials of these numbers as disturbed."""

    def marked(history):
        return [replace(o, status=TrialStatus.VOID) if o.trial.id in ids else o for o in history]

    return marked


def spoiled(*ids, blocks=4, budget_s=None, seed=1):
    names, loads = ("base", "one", "two"), ("r", "w")
    return Blocks(
        names, loads, blocks, budget_s, seed, baseline="base", valid=voids(*ids)
    )  # fmt: skip


def cells(trials):
    return Counter((t.workload, t.treatment) for t in trials)


def first(treatment, workload="w"):
    """Return the number of a cell's trial in the first block."""
    every = play(spoiled())
    return next(t.id for t in every if (t.workload, t.treatment) == (workload, treatment))


def test_without_disturbance_nothing_is_repeated():
    assert len(play(spoiled())) == spoiled().total == 24


def test_a_disturbed_trial_is_repeated_beside_the_baseline():
    more = play(spoiled(first("one")))[24:]
    assert cells(more) == {("w", "base"): 1, ("w", "one"): 1}
    assert {t.block for t in more} == {4}
    assert [t.id for t in more] == [24, 25]


def test_a_disturbed_baseline_takes_the_comparisons_of_its_block_with_it():
    more = play(spoiled(first("base")))[24:]
    assert cells(more) == {("w", "base"): 1, ("w", "one"): 1, ("w", "two"): 1}


def test_what_is_disturbed_again_is_repeated_again():
    lost = first("one", "r")
    again = next(t.id for t in play(spoiled(lost))[24:] if t.treatment == "one")
    more = play(spoiled(lost, again))[24:]
    assert cells(more) == {("r", "base"): 2, ("r", "one"): 2}
    assert [t.block for t in more] == [4, 4, 5, 5]


def test_at_most_half_as_many_blocks_repeat_what_is_disturbed():
    design = spoiled(*range(100))
    assert len(play(design)) == 24 + 12 == design.total + design.size.spare
    assert len(play(spoiled(*range(100), blocks=3))) == 18 + 12


def test_a_lost_trial_is_an_outcome_and_not_repeated():
    design = replace(spoiled(), valid=lambda every: [lost(o) for o in every])
    assert len(play(design)) == 24


def lost(outcome):
    return replace(outcome, status=TrialStatus.FAILED)


def played(status_of, **more):
    """Return the trials of blocks with a budget; what is not OK ends before its load began."""
    design = replace(Blocks(("A", "B"), ("w",), None, 3600.0, 1), **more)
    history = []
    while (trial := design.next(history)) and len(history) < 40:
        ok = status_of(trial)
        history.append(done(trial, 400.0) if ok else lost(done(trial, 0.0)))
    return history


def test_two_blocks_in_which_nothing_ends_well_end_it():
    """Such trials take no machine time, so that a budget alone would never end it."""
    assert len(played(lambda _: False)) == 4
    assert len(played(lambda trial: trial.block == 0)) == 6
    assert len(played(lambda _: False, blocks=9, budget_s=None)) == 4
    one_works = played(lambda trial: trial.treatment == "B")
    assert len(one_works) == 18  # the budget ends it


def test_no_repeated_block_exceeds_the_budget():
    lost = first("one")
    assert len(play(spoiled(lost, budget_s=24 * 40.0 + 79))) == 24
    assert len(play(spoiled(lost, budget_s=24 * 40.0 + 81))) == 26


@given(st.sets(st.integers(0, 40)), st.integers(1, 6), st.integers(0, 99))
def test_no_comparison_is_missing_as_long_as_blocks_are_left(ids, blocks, seed):
    design = spoiled(*ids, blocks=blocks, seed=seed)
    every = [t for t in play(design) if t.id not in ids]
    if max(t.block for t in play(design)) + 1 == blocks + -(-blocks // 2):
        return
    for load in design.workloads:
        of = {name: {t.block for t in every if (t.workload, t.treatment) == (load, name)}
              for name in design.treatments}  # fmt: skip
        assert all(len(of[name] & of["base"]) >= blocks for name in design.treatments)
