"""Stalls: which seconds are one, what is left, and what a diagnosis makes of them."""

import random
from math import exp, log

import pytest

from mydyno.campaign.doses import STALLED, STEADY, Doses, factor, proven, segments, stalled
from mydyno.diagnose.diagnosis import main_limit
from mydyno.diagnose.elasticity import MOST_STALLED, outside, stall_below
from mydyno.model import Metric, Outcome, Trial, TrialStatus, Window

USUAL = [66.0, 68.0, 64.0, 71.0, 69.0, 67.0]


def test_a_stall_is_half_of_the_usual_rate_and_far_from_its_noise():
    assert stall_below(USUAL) == pytest.approx(33.75)
    assert stall_below([100, 60, 140, 80, 120, 100]) == 0.0  # noise goes as far
    assert stall_below([0.0] * 9) == 0.0
    assert stall_below([]) == 0.0
    with_one = [*USUAL, 0.0, 0.0]
    assert stall_below(with_one) > 30  # the stalls of the first trial do not hide others


def test_the_seconds_beside_a_stall_are_left_out_with_it():
    assert outside([67, 66, 0, 48, 68, 70], below=33.5) == (
        pytest.approx((67 + 68 + 70) / 3),
        1 / 6,
    )
    assert outside([66, 0, 48, 68, 70], below=33.5, skip=2) == (pytest.approx(69), 0.0)
    assert outside([0, 60, 0, 0, 0], below=33.5) == (None, 0.8)
    assert outside([1.0, 2.0], below=0.0) == (1.5, 0.0)
    assert outside([], below=1.0) == (None, 0.0)


def play(*, often, note=True, seed=3):
    """Return the trials of a diagnosis whose disk is the limit, and whose load stalls so often."""
    design = Doses(
        "BASE",
        "w",
        tuple(f"{limit} {n}%" for n in (80, 70) for limit in ("disk.rate", "slow.host", "all")),
        "tps",
        360.0,
        1,
    )
    chance, history = random.Random(seed), []
    while one := design.next(history):
        slow = one.treatment.startswith(("disk.rate", "all"))
        usual = 68 * exp(log(factor(one.treatment)) if slow else 0.0)
        rates = [usual + chance.gauss(0, 2) for _ in range(7)]
        if history and chance.random() < often:
            at = chance.randrange(2, 6)
            rates[at : at + 2] = [0.0, 0.0]
        steady, share = outside(rates, 33.0, 2)
        metrics = [Metric("tps", sum(rates[2:]) / 5, "/s")]
        if history and note:
            metrics.append(Metric(STALLED, share, "ratio"))
            metrics += [] if steady is None else [Metric(STEADY, steady, "/s")]
        spent_s = 8.0 if history else 35.0
        window = Window(2.0, 7.0)
        history.append(Outcome(one, TrialStatus.OK, window, tuple(metrics), machine_time_s=spent_s))
    return history


def test_a_limit_is_proven_between_stalls_that_hide_it():
    left_out = proven(play(often=0.3, seed=4), "BASE", "tps", 360.0)
    assert main_limit(left_out.worse).limit == "disk.rate"
    assert 0 < left_out.stalled < MOST_STALLED
    hidden = proven(play(often=0.3, note=False, seed=4), "BASE", "tps", 360.0)
    assert main_limit(hidden.worse) is None


def test_stalls_under_doses_alone_are_not_their_effect():
    found = proven(play(often=0.3, seed=3), "BASE", "tps", 360.0)
    assert found.stalled == 0.0
    assert main_limit(found.worse).limit == "disk.rate"


def test_stalls_that_are_how_the_load_runs_are_not_left_out():
    history = play(often=1.0)
    assert stalled(history, "BASE") > MOST_STALLED
    raw = {m.value for o in history[1:] for m in o.metrics if m.name == "tps"}
    assert {s.value for s in segments(history, "BASE", "tps")} <= raw


def test_a_segment_that_is_all_stall_has_no_rate():
    def trial(number, *metrics):
        made = Trial(number, "BASE", "w", 1, 1)
        return Outcome(made, TrialStatus.OK, Window(2, 7), metrics)

    tps, none = Metric("tps", 9.0, "/s"), Metric(STALLED, 0.2, "ratio")
    steady = Metric(STEADY, 68.0, "/s")
    history = [trial(0, tps), trial(1, tps, none), trial(2, tps, none, steady)]
    assert [s.value for s in segments(history, "BASE", "tps")] == [68.0]
