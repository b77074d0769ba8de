"""A diagnosis in one sentence: the limit, several of them, or that it is unknown."""

from math import log

import pytest
from msgspec.structs import replace

from mydyno.diagnose import Diagnosis, Proof, with_proofs
from mydyno.diagnose.account import AccountLine
from mydyno.report.limits import render_limits, sentence, views


def proof(limit, title, elasticity, verdict):
    return Proof(limit, title, 0.8, elasticity, elasticity - 0.1, elasticity + 0.1, verdict, 6)


READS = proof("disk.read_latency", "latency of its reads", 0.52, "a_limit")
TRIP = proof("link.delay", "round trip of the link", 0.35, "a_limit")
CPUS = proof("slow.host", "CPUs of this host", 0.05, "not_it")
MAIN = proof("disk.rate", "rate of the disk", 0.9, "the_limit")


def diagnosed(*proofs, answer="unknown"):
    line = AccountLine("server_cpu", 8.0, 1.0, "schedstat", exact=True)
    bare = Diagnosis("A", "w", 1, 100.0, "/s", 8.0, [line], 0.0, [], [], answer)
    return with_proofs(bare, proofs, ())


def test_less_of_a_latency_is_what_helps():
    line = AccountLine("network", 8.0, 1.0, "sampled")
    bare = Diagnosis("A", "w", 1, 100.0, "/s", 8.0, [line], 0.0, [], [], "unknown")
    main = proof("link.delay", "round trip of the link", 0.95, "the_limit")
    less = replace(proof("link.delay", "round trip of the link", 0.9, "the_limit"), dose=1.25)
    found = replace(with_proofs(bare, (main,), (less,)), next_limit=("server_cpu", 2.0))
    shown = render_limits([found], 200)
    assert "20% less of it gives +22%" in shown
    assert "the next limit comes at about 0.50 of it" in shown
    rate = replace(found, relaxed=[replace(less, limit="link.rate")], answer="link.rate")
    assert "25% more of it gives +22%" in render_limits([rate], 200)
    assert "at about 2.0 times as much" in render_limits([rate], 200)


TRIP_ALONE = (
    "a limit is the round trip of the link (0.35), proven by doses; the main one is unknown."
)
BOTH = (
    "several limits, none the main one: the latency of its reads (0.52) and the round trip of the "
    "link (0.35), proven by doses."
)


@pytest.mark.parametrize(
    ("proofs", "expected"),
    [
        ((MAIN, CPUS), "the limit is the rate of the disk, proven by doses."),
        (
            (TRIP, CPUS, READS),
            BOTH,
        ),
        (
            (TRIP, CPUS),
            TRIP_ALONE,
        ),
        ((CPUS,), "the limit is unknown; no dose has proven one."),
    ],
)
def test_the_answer_names_what_doses_have_proven(proofs, expected):
    assert sentence(diagnosed(*proofs)) == f"A, w: {expected}"
    assert render_limits([diagnosed(*proofs)], 200).splitlines()[0] == f"A, w: {expected}"


@pytest.mark.parametrize(
    ("half", "expected"),
    [
        (0.4, "about 7 blocks would decide: run it with --blocks 7."),
        (0.6, "about 15 blocks would decide: run it with --blocks 15."),
        (1.6, "more than 60 blocks would decide: look for what makes this host uneven."),
    ],
)
def test_what_is_undecided_is_shown_with_the_blocks_that_would_decide_it(half, expected):
    wide = proof("link.rate", "rate of the link", 0.53, "undecided")
    found = diagnosed(replace(wide, low=0.53 - half, high=0.53 + half), CPUS)
    text = " ".join(render_limits([found], 200).split())
    assert "Undecided" not in render_limits([diagnosed(CPUS)], 200)
    assert f"Undecided: the rate of the link. At the spread seen, {expected}" in text


@pytest.mark.parametrize(
    ("gain", "expected"),
    [
        (
            1.5,
            "no dose has proven a limit, but sort_buffer_size = 256K gives 1.50 [1.36..1.66] times",
        ),
        (1.15, "the limit is unknown; no dose has proven one"),
    ],
)
def test_a_setting_that_helps_is_in_the_answer_where_no_dose_has_one(gain, expected):
    relief = proof("try mysqld.sort_buffer_size=256K", "sort_buffer_size = 256K", log(gain), "")
    found = with_proofs(diagnosed(), [CPUS], (), [relief])
    assert sentence(found).startswith(f"A, w: {expected}")
    assert f"{gain:.2f}" in render_limits([found], 200)
    assert "the limit is the rate" in sentence(with_proofs(diagnosed(), [MAIN], (), [relief]))


def test_what_weakens_durability_is_marked_in_the_answer_too():
    title = "innodb_flush_log_at_trx_commit = 2, which weakens durability"
    relief = proof("try mysqld.innodb_flush_log_at_trx_commit=2", title, log(1.5), "")
    assert f"but {title}, gives 1.50 [" in sentence(with_proofs(diagnosed(), [CPUS], (), [relief]))


def test_without_doses_nothing_is_called_proven():
    bare = Diagnosis("A", "w", 1, 100.0, "/s", None, [], None, [], [], "unknown")
    assert sentence(bare) == "A, w: the limit is unknown."


def test_a_load_that_asks_for_no_more_stays_the_answer_where_no_dose_has_one():
    idle = diagnosed(CPUS, answer="load_idle")
    assert sentence(idle) == (
        "A, w: the load itself is the limit, as it asks for no more; give it more threads, or a "
        "higher rate."
    )
    assert sentence(diagnosed(MAIN, answer="load_idle")).startswith("A, w: the limit is the rate")


def test_proofs_are_shown_where_nothing_was_sampled():
    bare = Diagnosis("A", "w", 0, 100.0, "/s", None, [], None, [], [], "unknown")
    relief = proof("try x", "sort_buffer_size = 256K", log(1.5), "")
    found = with_proofs(bare, [MAIN, CPUS], (), [relief])
    text = render_limits([found], 200)
    assert "there is no account" in text
    assert "rate of the disk 0.90 [0.80..1.00] the limit" in " ".join(text.split())
    assert "1.50 [" in text
    (view,) = views([found])
    assert view.proven.estimate == "0.90"
    assert view.bars[0].total == "not sampled, 100 /s"
    assert views([bare]) == ()


def test_what_none_explains_is_no_share_below_zero():
    every = proof("all", "all of these at once", 1.3, "")
    text = render_limits([diagnosed(MAIN, every)], 200)
    assert "Not explained by any of them: 0.00 to 0.00." in text
    some = render_limits([diagnosed(MAIN, replace(every, low=0.8, high=1.2))], 200)
    assert "Not explained by any of them: 0.00 to 0.20." in some


def test_what_holds_of_cpus_is_on_the_page_as_in_the_text():
    (view,) = views([diagnosed(CPUS)])
    assert any("a thread that is preempted may hold a latch" in note for note in view.notes)
    assert "preempted" in render_limits([diagnosed(CPUS)], 200)
    (other,) = views([diagnosed(MAIN)])
    assert not any("preempted" in note for note in other.notes)


def test_a_load_that_reports_too_seldom_has_the_reason():
    coarse = replace(diagnosed(), doubts=["coarse"], dosed=True)
    assert "reports too seldom for segments of seven seconds" in render_limits([coarse], 200)
