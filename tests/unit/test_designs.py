"""Designs are pure: the same history gives the same trial, and every cell its turn."""

from collections import Counter

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
