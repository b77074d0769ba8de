"""Elasticities from segments: intervals that hold together, verdicts, and when a run ends."""

import random
import subprocess
import sys
from dataclasses import replace
from math import exp, log
from pathlib import Path

import pytest

from mydyno.campaign.doses import COARSE, PACED, Doses, factor, proven, segments, title
from mydyno.diagnose import LoadEvidence, Suspect, worth
from mydyno.diagnose.account import NETWORK, READ, Account
from mydyno.diagnose.diagnosis import ALL, Proof, main_limit
from mydyno.diagnose.elasticity import (
    BlockLooks,
    Segment,
    all_refuted,
    judged,
    proofs,
)
from mydyno.model import Figures, Metric, Outcome, Trial, TrialStatus, Window

ROOT = Path(__file__).parents[2]
DOSES = ("disk.rate", "slow.host", ALL)
TOGETHER = "all 80%"


def made(truth, noise=0.02, blocks=6, seed=1, drift=0.0):
    """Return segments of a load with these elasticities."""
    chance = random.Random(seed)
    return [
        Segment(
            dose,
            block,
            100 * exp(chance.gauss(drift * block, noise) + truth.get(dose, 0.0) * log(0.8)),
            0.8 if dose else 1.0,
        )
        for block in range(1, blocks + 1)
        for dose in ("", "", *DOSES)
    ]


def test_a_line_without_a_suspect_is_worth_a_dose_where_it_would_be_a_limit():
    link = Suspect("link_rate", "", 0.6, [], doses=["link.rate", "net.compress"])
    seen = LoadEvidence(Figures({}), Account(16.0, [], 0.0, 0.0), {NETWORK: 0.55, READ: 0.3})
    assert worth(seen, [link]) == {
        "link.rate": 0.6,
        "net.compress": 0.6,
        "link.delay": 0.55,
        "disk.rate": 0.3,
        "disk.read_latency": 0.3,
    }
    little = LoadEvidence(Figures({}), Account(16.0, [], 0.0, 0.0), {READ: 0.1})
    assert worth(little, []) == {}


def test_elasticities_are_recovered_whatever_the_drift_between_blocks():
    truth = {"disk.rate": 1.0, "slow.host": 0.0, ALL: 1.0}
    found = {p.limit: p for p in proofs(made(truth, drift=0.2), BlockLooks(6))}
    for name, e in truth.items():
        assert found[name].low <= e <= found[name].high
        assert found[name].elasticity == pytest.approx(e, abs=0.15)
    assert found["disk.rate"].verdict == "the_limit"
    assert found["slow.host"].verdict == "not_it"
    assert found[ALL].verdict == ""


def test_a_latency_that_is_longer_is_a_speed_that_is_lower():
    assert factor("disk.flush_latency 125%") == pytest.approx(0.8)
    assert factor("disk.rate 125%") == pytest.approx(1.25)
    assert factor("all 80%") == pytest.approx(0.8)


def test_one_block_has_no_interval_and_nothing_is_concluded_from_noise():
    assert proofs(made({}, blocks=1), BlockLooks(6)) == []
    loud = proofs(made({"disk.rate": 0.4}, noise=0.3, blocks=3), BlockLooks(6))
    assert main_limit(loud) is None


def test_nothing_tested_limits_it():
    found = proofs(made({}, noise=0.005), BlockLooks(6))
    assert all_refuted(found)
    assert main_limit(found) is None


def test_intervals_hold_together_over_doses_and_looks():
    """The error that is promised is spent once, although each block's end is a look."""
    truth = {"disk.rate": 0.5, "slow.host": 0.3, ALL: 0.8}
    missed = 0
    for seed in range(300):
        every = made(truth, seed=seed, blocks=8)
        missed += any(
            not p.low <= truth[p.limit] <= p.high
            for blocks in range(3, 9)
            for p in proofs([s for s in every if s.block <= blocks], BlockLooks(8))
            if p.limit != ALL
        )
    assert missed <= 300 * 0.08  # 5 % are promised


def trial(number, treatment, block, value, metrics=()):
    return Outcome(
        Trial(number, treatment, "w", block, 1),
        TrialStatus.OK,
        Window(0, 5),
        (Metric("tps", value, "/s"), *metrics),
        machine_time_s=35.0 if number == 0 else 8.0,
    )


def play(truth, expected=(), noise=0.01, doses=None, **ends):
    """Run a diagnosis of a load with these elasticities; return its design and its trials."""
    known = doses or ("disk.rate 80%", "disk.rate 125%", "slow.host 80%", TOGETHER)
    stronger = (d.replace("80%", "70%").replace("125%", "143%") for d in known)
    known = tuple(dict.fromkeys((*known, *stronger)))
    design = Doses("BASE", "w", known, "tps", seed=1, **{"budget_s": 360.0, **ends})
    chance, history = random.Random(4), []
    while one := design.next(history):
        e = truth.get(one.treatment.partition(" ")[0], 0.0)
        shift = e * log(factor(one.treatment)) if one.treatment != "BASE" else 0.0
        value = 100 * exp(shift + chance.gauss(0, noise))
        more = [Metric(f"expected {k}", v, "ratio") for k, v in expected] if not history else []
        more += [Metric("own flush_latency", 0.003, "s")] if not history else []
        history.append(trial(one.id, one.treatment, one.block, value, more))
    return design, history


def test_a_diagnosis_begins_with_a_long_trial_and_relaxes_what_it_has_proven():
    _, history = play({"disk.rate": 1.0, ALL: 1.0})
    assert history[0].trial.treatment == "BASE"
    names = [o.trial.treatment for o in history]
    assert names.count("disk.rate 125%") >= 2
    assert names.index("disk.rate 125%") > names.index("disk.rate 80%")
    seen = proven(history, "BASE", "tps", 360.0)
    assert main_limit(seen.worse).limit == "disk.rate"
    assert seen.better[0].elasticity == pytest.approx(1.0, abs=0.2)


def test_the_account_chooses_the_doses_and_the_rest_follows_where_they_are_refuted():
    doses = ("disk.rate 80%", "disk.flush_latency 125%", "slow.host 80%", TOGETHER)
    _, history = play({"slow.host": 0.9, ALL: 0.9}, [("disk.rate", 0.9)], doses=doses)
    first = {o.trial.treatment for o in history if 1 <= o.trial.block <= 3}
    assert first == {"BASE", "disk.rate 80%", TOGETHER}
    assert "slow.host 80%" in {o.trial.treatment for o in history}
    worse = proven(history, "BASE", "tps", 360.0).worse
    assert main_limit(worse).limit == "slow.host"


def test_what_all_at_once_shows_beyond_the_chosen_doses_has_the_others_tried():
    doses = ("link.delay 125%", "slow.host 80%", TOGETHER)
    expected = [("link.delay", 0.6)]
    _, history = play({"link.delay": 0.3, "slow.host": 0.7, ALL: 1.0}, expected, doses=doses)
    first = {o.trial.treatment for o in history if 1 <= o.trial.block <= 3}
    assert first == {"BASE", "link.delay 125%", TOGETHER}
    worse = proven(history, "BASE", "tps", 360.0).worse
    assert main_limit(worse).limit == "slow.host"
    _, alone = play({"link.delay": 0.3, ALL: 0.3}, expected, doses=doses)
    assert "slow.host 80%" not in {o.trial.treatment for o in alone}


def test_a_limit_beside_the_proven_one_is_tried_until_it_is_decided():
    doses = ("disk.rate 80%", "slow.host 80%", TOGETHER)
    _, history = play({"disk.rate": 0.85, "slow.host": 0.35, ALL: 1.1}, noise=0.03, doses=doses)
    seen = {p.limit: p for p in proven(history, "BASE", "tps", 360.0).worse}
    assert seen["disk.rate"].verdict == "the_limit"
    assert seen["slow.host"].verdict == "a_limit"
    tried = [o.trial.treatment for o in history]
    assert tried.count("slow.host 80%") > tried.count("disk.rate 80%")
    assert sum(o.machine_time_s for o in history) <= 360 + 8


def test_where_an_interval_is_too_wide_to_prove_doses_become_stronger_and_count_as_one():
    mild, strong = "disk.rate 80%", "disk.rate 70%"
    _, quiet = play({"disk.rate": 0.45, ALL: 0.45}, noise=0.01, doses=(mild, TOGETHER))
    assert strong not in {o.trial.treatment for o in quiet}
    _, loud = play({"disk.rate": 0.6, ALL: 0.6}, noise=0.08, doses=(mild, TOGETHER))
    given = [o.trial.treatment for o in loud]
    assert given.count(mild) == given.count(TOGETHER) == 3
    assert given.count(strong) == given.count("all 70%") > 2
    (found, together) = proven(loud, "BASE", "tps", 360.0).worse
    assert (found.limit, found.segments) == ("disk.rate", 3 + given.count(strong))
    assert found.high - found.low < 1.5
    assert together.limit == ALL


def test_a_treatment_that_is_named_like_a_dose_makes_none_stronger():
    names = ("disk.rate 80%", TOGETHER, "disk.rate 70%", "all 70%")
    design = Doses("pool=70%", "w", names, "tps", 360.0, 1)
    history = [trial(0, "pool=70%", 0, 100.0)]
    while (one := design.next(history)).block == 1:
        history.append(trial(one.id, one.treatment, one.block, 100.0))
    assert {o.trial.treatment for o in history} == {"pool=70%", "disk.rate 80%", TOGETHER}


def test_segments_of_several_speeds_are_one_elasticity():
    every = [
        Segment(dose, block, 100 * speed**0.6, speed)
        for block in range(1, 5)
        for dose, speed in (("", 1.0), ("", 1.0), ("disk.rate", 0.8 if block < 3 else 0.7))
    ]
    (found,) = proofs(every, BlockLooks(4))
    assert found.elasticity == pytest.approx(0.6)
    assert (found.dose, found.segments) == (0.7, 4)


def test_it_is_over_within_its_budget_and_where_nothing_is_left_to_try():
    _, history = play({"disk.rate": 0.3, "slow.host": 0.3, ALL: 0.6}, noise=0.05)
    assert sum(o.machine_time_s for o in history) <= 360 + 8
    _, none = play({})
    assert sum(o.machine_time_s for o in none) < 300  # all refuted: no more would be learnt
    assert none[-1].trial.block == 3


def test_the_first_three_blocks_are_of_as_many_doses_as_the_budget_has_time_for():
    doses = ("disk.rate 80%", "link.rate 80%", "slow.host 80%", TOGETHER)
    expected = [("link.rate", 0.5), ("disk.rate", 0.9)]
    _, small = play({"disk.rate": 0.9}, expected, doses=doses, budget_s=110.0)
    assert {o.trial.treatment for o in small} == {"BASE", "disk.rate 80%"}
    assert [o.trial.block for o in small] == [0, *(b for b in (1, 2, 3) for _ in range(3))]
    _, larger = play({"disk.rate": 0.9}, expected, doses=doses, budget_s=140.0)
    first = {o.trial.treatment for o in larger if o.trial.block == 1}
    assert first == {"BASE", "disk.rate 80%", "link.rate 80%"}
    assert sum(o.machine_time_s for o in larger) <= 140


def test_a_kill_costs_no_answer_and_no_more_than_the_budget_again():
    """The segment that was cut off is as long as a first trial: the server is a new one."""
    design = Doses("BASE", "w", ("disk.rate 80%",), "tps", 150.0, 1)

    def spent_with(first_s, at, later_s):
        history = [replace(trial(0, "BASE", 0, 100.0), machine_time_s=first_s)]
        while one := design.next(history):
            value = 80.0 if "80%" in one.treatment else 100.0
            done = trial(one.id, one.treatment, one.block, value + 0.01 * one.id)
            history.append(replace(done, machine_time_s=later_s if one.id == at else 8.0))
        return history

    killed = spent_with(61.0, 3, 61.0)
    assert killed[-1].trial.block == 3
    assert main_limit(proven(killed, "BASE", "tps", 150.0).worse) is not None
    stuck = spent_with(61.0, 1, 300.0)  # such a server gets no more of the host's time
    assert stuck[-1].trial.id == 1


def test_of_two_above_one_half_none_is_the_main_one_and_both_are_named():
    """Balanced queues of one half each show 0.7 under a dose of a fifth."""
    doses = ("disk.rate 80%", "slow.host 80%", TOGETHER)
    _, history = play({"disk.rate": 0.7, "slow.host": 0.66, ALL: 1.0}, doses=doses)
    worse = proven(history, "BASE", "tps", 360.0).worse
    assert {p.limit: p.verdict for p in worse if p.limit != ALL} == {
        "disk.rate": "a_limit",
        "slow.host": "a_limit",
    }
    assert min(p.low for p in worse) > 0.5
    assert main_limit(worse) is None


def test_a_limit_that_may_be_the_larger_one_leaves_none_the_main_one():
    """Link rate and reads of the bench: taking the second one away gave more."""
    rate = Proof("link.rate", "", 0.8, 0.82, 0.57, 1.06, "")
    read = Proof("disk.read_latency", "", 0.8, 0.72, 0.49, 0.94, "")
    assert [p.verdict for p in judged([rate, read])] == ["a_limit", "a_limit"]
    small = Proof("disk.read_latency", "", 0.8, 0.31, 0.19, 0.42, "")
    assert [p.verdict for p in judged([rate, small])] == ["the_limit", "a_limit"]
    unsure = Proof("slow.host", "", 0.8, 0.53, -0.12, 1.18, "")  # shown to be none
    assert [p.verdict for p in judged([rate, unsure])] == ["the_limit", "undecided"]


def test_doses_that_were_not_chosen_are_tried_beside_a_proven_limit_that_explains_too_little():
    doses = ("link.delay 125%", "slow.host 80%", TOGETHER)
    expected = [("link.delay", 0.6)]
    _, history = play({"link.delay": 0.62, "slow.host": 0.4, ALL: 1.05}, expected, doses=doses)
    seen = {p.limit: p.verdict for p in proven(history, "BASE", "tps", 360.0).worse}
    assert seen["link.delay"] == "the_limit"
    assert seen["slow.host"] == "a_limit"


def test_an_answer_waits_for_the_blocks_that_were_asked_for_and_is_as_narrow_as_they_make_it():
    _, soon = play({"disk.rate": 1.0, ALL: 1.0})
    _, late = play({"disk.rate": 1.0, ALL: 1.0}, least=20, budget_s=None)
    first = next(o.trial.block for o in soon if o.trial.treatment == "disk.rate 125%")
    assert first == 4
    assert {o.trial.block for o in late if o.trial.treatment == "disk.rate 80%"} == {*range(1, 21)}
    assert late[-1].trial.block == 20
    (few, *_), (many, *_) = (proven(h, "BASE", "tps", None).worse for h in (soon, late))
    assert many.high - many.low < (few.high - few.low) / 2
    _, cut = play({"disk.rate": 1.0, ALL: 1.0}, least=20, budget_s=200.0)
    assert sum(o.machine_time_s for o in cut) <= 200 + 8


def test_a_latency_that_was_not_measured_is_no_dose():
    """Nothing is read: a longer read would slow nothing, and "not it" would be no finding."""
    doses = ("disk.read_latency 125%", "disk.flush_latency 125%", TOGETHER)
    _, history = play({"disk.flush_latency": 1.0, ALL: 1.0}, doses=doses)
    assert {o.trial.treatment for o in history} == {"BASE", "disk.flush_latency 125%", TOGETHER}


def test_a_dose_that_shows_nothing_leaves_its_time_to_the_others():
    doses = ("disk.rate 80%", "link.rate 80%", "slow.host 80%", TOGETHER)
    two = {"disk.rate": 0.45, "link.rate": 0.45, "slow.host": 0.0, ALL: 0.9}
    _, history = play(two, [(key, 0.5) for key in two], doses=doses)
    given = [o.trial.treatment for o in history]
    assert given.count("slow.host 80%") == 3
    assert given.count("disk.rate 80%") == given.count("link.rate 80%") > 4


@pytest.mark.parametrize("reason", [Metric(PACED, 1.0, "ratio"), Metric(COARSE, 7.0, "s")])
def test_a_load_that_asks_for_no_more_or_reports_too_seldom_is_given_no_dose(reason):
    design = Doses("BASE", "w", ("slow.host 80%", TOGETHER), "tps", 360.0, 1)
    assert design.next([trial(0, "BASE", 0, 50.0, [reason])]) is None
    assert design.next([trial(0, "BASE", 0, 50.0)]) is not None


def test_a_failed_first_trial_ends_it():
    design = Doses("BASE", "w", ("disk.rate 80%",), "tps", 360.0, 1)
    failed = Outcome(design.next([]), TrialStatus.FAILED, Window(0, 0), error="no server")
    assert design.next([failed]) is None


def test_failed_segments_are_left_out():
    history = [trial(0, "BASE", 0, 100.0), trial(1, "BASE", 1, 99.0)]
    lost = Outcome(Trial(2, "disk.rate 80%", "w", 1, 1), TrialStatus.FAILED, Window(0, 0))
    assert segments([*history, lost], "BASE", "tps") == [Segment("", 1, 99.0)]


def test_a_setting_that_relieves_a_suspect_is_tried_and_is_no_elasticity():
    setting = "mysqld.sort_buffer_size"
    doses = ("slow.host 80%", f"try {setting}=256K", "try mysqld.tmp_table_size=64M")
    _, history = play({"slow.host": 1.0}, [("slow.host", 1.0), (setting, 0.5)], doses=doses)
    assert {o.trial.treatment for o in history} == {"BASE", *doses[:2]}
    seen = proven(history, "BASE", "tps", 360.0)
    assert [p.limit for p in seen.worse] == ["slow.host"]
    (relief,) = seen.reliefs
    assert relief.low <= 0 <= relief.high  # in this load it gives nothing, which takes a while
    assert sum(o.trial.treatment == doses[1] for o in history) > 3
    assert sum(o.machine_time_s for o in history) <= 360


def test_every_dose_has_words():
    assert title("disk.rate") == "rate of the disk"
    assert title(ALL) == "all of these at once"


def test_the_bench_of_simulated_networks_runs():
    """It is run by hand, and its table is in the docs."""
    argv = [sys.executable, ROOT / "bench/diagnose.py", "--seeds", "1"]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.count("\n| ") >= 5, done.stdout
