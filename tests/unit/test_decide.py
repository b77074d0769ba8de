"""Failures, zeros and guards that cannot be evaluated never end in an adoption."""

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.model import Metric, Outcome, Trial, TrialStatus, Window
from mydyno.stats import Estimator, Goal, Method, Rule, undecided
from mydyno.stats.decide import failing, gate
from mydyno.stats.result import Ends
from mydyno.stats.rule import is_lower, known
from worded import compare

RULE = Rule("c", "A", {"w": "tps"})
GUARD = replace(RULE, guards={"latency_p99_s": 0.1})


def campaign(blocks=8, gain=1.3, *, latency=True, response="tps"):
    """Return outcomes of A and B, of which B is better."""
    chance, found = random.Random(1), []
    for block in range(blocks):
        for name, level in (("A", 1.0), ("B", gain)):
            metrics = [Metric(response, 1000 * level * math.exp(chance.gauss(0, 0.01)), "/s")]
            if latency:
                metrics.append(Metric("latency_p99_s", 0.02 * math.exp(chance.gauss(0, 0.01)), "s"))
            trial = Trial(len(found), name, "w", block, block)
            found.append(
                Outcome(trial, TrialStatus.OK, Window(0, 1), tuple(metrics), machine_time_s=10)
            )
    return found


def harmed(outcomes, name, blocks, harm):
    hit = [o.trial.treatment == name and o.trial.block in blocks for o in outcomes]
    return [harm(o) if it else o for o, it in zip(outcomes, hit, strict=True)]


def crash(outcome):
    return replace(outcome, status=TrialStatus.FAILED, metrics=(), error="server died")


def set_to(name, value):
    def harm(outcome):
        others = [m for m in outcome.metrics if m.name != name]
        new = [] if value is None else [Metric(name, value, "")]
        return replace(outcome, metrics=(*others, *new))

    return harm


def row(outcomes, rule=RULE, name="B"):
    return next(r for r in compare(outcomes, rule, "AB").treatments if r.name == name)


def test_what_would_have_been_seen_is_what_the_bound_for_all_treatments_can_adopt():
    """Beside two others it is more than its own interval shows."""
    same = [o for o in campaign(gain=1.0) if o.trial.treatment == "B"]
    others = [replace(o, trial=replace(o.trial, treatment=name)) for name in "CD" for o in same]
    done = [
        replace(o, trial=replace(o.trial, id=i), window=Window(10.0 * i, 10.0 * i + 1))
        for i, o in enumerate([*campaign(), *others])
    ]
    rule = replace(RULE, method=Method(Estimator.WINDOWS))
    (found,) = [r for r in compare(done, rule, "ABCD").treatments if r.name == "B"]
    own = math.sqrt(found.effect.high / found.effect.low)
    assert found.detectable - 1 > 1.02 * (own - 1)


@pytest.mark.parametrize(
    ("own", "baseline", "word"),
    [
        ((8, 0), (8, 0), ""),
        ((8, 1), (8, 0), "unstable"),
        ((8, 4), (8, 0), "unstable"),
        ((8, 5), (8, 0), "failed"),
        ((8, 8), (8, 8), "failed"),
        ((8, 2), (8, 2), ""),
        ((8, 2), (16, 4), ""),
        ((8, 2), (16, 3), "unstable"),
        ((1, 1), (0, 0), "failed"),
    ],
)
def test_a_treatment_that_fails_more_often_than_the_baseline_is_never_adopted(own, baseline, word):
    ends = [Ends(trials=n, failed=lost) for n, lost in (own, baseline)]
    assert failing(*ends) == word


@given(st.integers(1, 60), st.integers(0, 60), st.integers(1, 60), st.integers(0, 60))
def test_one_more_failure_never_makes_it_better(trials, lost, base, base_lost):
    lost, base_lost = min(lost, trials), min(base_lost, base)
    worse = {"": 0, "unstable": 1, "failed": 2}
    baseline = Ends(trials=base, failed=base_lost)
    words = [
        worse[failing(Ends(trials=trials, stalled=n), baseline)] for n in range(lost, trials + 1)
    ]
    assert words == sorted(words)
    assert words[-1] == worse["failed"]


@pytest.mark.parametrize(
    ("harm", "kind"),
    [
        (crash, "failed"),
        (set_to("tps", 0.0), "stalled"),
        (set_to("tps", -1.0), "stalled"),
        (set_to("tps", math.nan), "unknown"),
        (set_to("tps", math.inf), "unknown"),
        (set_to("tps", None), "unknown"),
    ],
)
@pytest.mark.parametrize("rule", [RULE, replace(RULE, method=Method(Estimator.WINDOWS, Goal.BEST))])
def test_a_trial_that_is_lost_counts(harm, kind, rule):
    clean = campaign()
    assert row(clean, rule).verdict == "adopt"
    one = row(harmed(clean, "B", {3}, harm), rule)
    assert (one.verdict, getattr(one.ends, kind), one.ends.lost) == ("unstable", 1, 1)
    most = compare(harmed(clean, "B", range(6), harm), rule, "AB")
    assert most.treatments[1].verdict == "failed"
    assert most.treatments[1].effect is None
    assert most.winner is None
    assert "6 of 8 trials, the baseline in 0 of 8" in most.sentence


def test_what_fails_alike_is_decided_by_the_other_trials():
    both = harmed(harmed(campaign(), "B", {3}, crash), "A", {5}, crash)
    found = compare(both, RULE, "AB")
    assert found.winner == "B"
    assert [r.ends.lost for r in found.treatments] == [1, 1]


def test_a_load_without_work_stalls_whatever_is_decided_on():
    rule = Rule("c", "A", {"w": "latency_p99_s"}, guards={})
    faster = harmed(campaign(), "B", range(8), set_to("latency_p99_s", 0.001))
    assert row(faster, rule).verdict == "adopt"
    assert row(harmed(faster, "B", {2}, set_to("tps", 0.0)), rule).verdict == "unstable"


def test_zero_errors_are_no_stall_and_no_ratio():
    rule = Rule("c", "A", {"w": "errors"}, guards={})
    fewer = campaign(gain=0.5, response="errors")
    assert row(fewer, rule).verdict == "adopt"
    none = row(harmed(fewer, "A", range(6), set_to("errors", 0.0)), rule)
    assert (none.verdict, none.ends.lost) == ("inconclusive", 0)
    assert "errors is 0 in 6 of its and the baseline's trials" in none.warnings[0]


def test_a_guard_nobody_asked_for_may_be_missing_and_one_asked_for_may_not():
    bare = campaign(latency=False)
    assert row(bare).verdict == "adopt"
    asked = row(bare, GUARD)
    assert (asked.verdict, asked.unevaluated) == ("inconclusive", {"latency_p99_s": "not measured"})
    assert undecided(GUARD, "AB")(bare) == set()  # more trials would not measure it either
    assert row(campaign(), GUARD).verdict == "adopt"


def test_a_guard_that_is_missing_warns_only_where_it_prevents_an_adoption():
    found = {gain: row(campaign(gain=gain, latency=False), GUARD) for gain in (1.3, 0.7)}
    assert [r.verdict for r in found.values()] == ["inconclusive", "reject"]
    assert all(r.unevaluated == {"latency_p99_s": "not measured"} for r in found.values())
    assert found[1.3].warnings[0].startswith("not adopted: the guard latency_p99_s cannot be")
    assert found[0.7].warnings == []


@pytest.mark.parametrize("value", [None, math.nan, math.inf])
def test_a_guard_that_some_trials_lack_blocks(value):
    some = harmed(campaign(), "B", range(2), set_to("latency_p99_s", value))
    found = row(some, GUARD)
    assert found.verdict == "inconclusive"
    assert found.unevaluated["latency_p99_s"] == "measured in 6 of 8 trials only"
    alone = harmed(campaign(), "B", range(8), set_to("latency_p99_s", value))
    assert row(alone).verdict == "inconclusive"  # the baseline has it: it is missing, not unknown


def test_zeros_of_a_guard():
    """Nothing is better than none of it; a baseline whose zeros have no ratio looks too bad."""
    rule = replace(RULE, guards={"errors": 0.1})

    def with_errors(own, baseline):
        found = harmed(campaign(), "B", range(8), set_to("errors", own))
        return harmed(found, "A", range(8), set_to("errors", baseline))

    assert row(with_errors(0.0, 0.0), rule).verdict == "adopt"
    assert row(with_errors(0.0, 1.0), rule).verdict == "adopt"
    assert row(with_errors(1.0, 0.0), rule).verdict == "inconclusive"
    mixed = harmed(with_errors(1.0, 0.0), "A", range(2), set_to("errors", 1.0))
    assert row(mixed, rule).unevaluated == {
        "errors": "0 in 6 of the baseline's 8 trials, so there is no ratio"
    }


def test_an_imported_campaign_was_asked_no_guards():
    rule = replace(GUARD, method=Method(guards_may_lack=True))
    assert row(campaign(latency=False), rule).verdict == "adopt"


def test_a_guard_on_throughput_is_turned():
    rule = Rule("c", "A", {"w": "latency_p99_s"}, guards={"tps": 0.1})
    faster = harmed(campaign(gain=1.0), "B", range(8), set_to("latency_p99_s", 0.001))
    assert row(faster, rule).verdict == "adopt"
    half = row(harmed(faster, "B", range(8), set_to("tps", 500.0)), rule)
    assert half.verdict == "reject"
    assert "rejected for its tps (tps): 0.50 times the baseline's" in half.warnings[0]
    assert "limit 0.91" in half.warnings[0]


def test_another_workload_speaks_against_a_winner():
    rule = Rule("c", "A", {"w": "tps", "v": "tps"}, guards={})
    outcomes = campaign()
    other = [
        replace(o, trial=replace(o.trial, id=o.trial.id + 100, workload="v"))
        for o in harmed(campaign(), "B", {0}, crash)
    ]
    found = compare([*outcomes, *other], rule, "AB")
    assert found.winners == {"w": "B", "v": None}
    assert found.winner is None


@pytest.mark.parametrize(
    ("outcomes", "rule", "codes"),
    [
        (campaign(), RULE, (0, 1)),
        (campaign(gain=1.0), RULE, (1, 0)),
        (campaign(gain=0.7), RULE, (1, 1)),
        (campaign(blocks=1), RULE, (5, 5)),
        (campaign(latency=False), GUARD, (5, 5)),
        (harmed(campaign(), "B", {1}, crash), RULE, (3, 3)),
        (harmed(campaign(), "B", range(8), crash), RULE, (3, 3)),
    ],
)
def test_the_gate(outcomes, rule, codes):
    found = compare(outcomes, rule, "AB")
    assert tuple(gate(found, word) for word in ("adopt", "equivalent")) == codes


def test_directions():
    assert known("latency_p99_payment_s") == known("errors") == known("tps_logsd") == "lower"
    assert known("tps") == known("compression_ratio") == "higher"
    assert known("cost") is None
    assert (is_lower("cost"), is_lower("cost", {"cost"})) == (False, True)
    declared = Rule("c", "A", {"w": "cost"}, guards={}, lower={"cost"})
    outcomes = campaign(gain=0.7, response="cost")
    for rule in (declared, replace(declared, method=Method(Estimator.WINDOWS))):
        assert compare(outcomes, rule, "AB").winner == "B"
        assert compare(outcomes, replace(rule, lower=()), "AB").winner is None


def void(outcome):
    return replace(outcome, status=TrialStatus.VOID)


def test_a_value_is_the_geometric_mean_of_the_valid_trials_that_a_reader_sees():
    outcomes = harmed(campaign(), "B", {3}, void)
    for name, trials in (("A", 8), ("B", 7)):
        shown = [o.metrics[0].value for o in outcomes if o.trial.treatment == name and is_ok(o)]
        value = row(outcomes, name=name).value
        assert len(shown) == trials
        assert value.estimate == pytest.approx(math.prod(shown) ** (1 / trials))
        assert min(shown) < value.estimate < max(shown)


def is_ok(outcome):
    return outcome.status is TrialStatus.OK


def test_the_sentence_counts_valid_trials_of_both():
    assert "8 valid trials each" in compare(campaign(), RULE, "AB").sentence
    fewer = compare(harmed(campaign(), "A", {2, 5}, void), RULE, "AB").sentence
    assert "8 valid trials, 6 of A)" in fewer


def test_where_all_treatments_are_unstable_that_is_the_reason():
    def wild(outcome):
        factor = 2.0 if outcome.trial.block % 2 else 0.5
        (first, *rest) = outcome.metrics
        return replace(outcome, metrics=(replace(first, value=first.value * factor), *rest))

    found = compare(harmed(campaign(), "B", range(8), wild), RULE, ["A", "B"])
    assert next(r for r in found.treatments if r.name == "B").verdict == "unstable"
    assert found.sentence == (
        "Keep the baseline: the trials of each treatment disagree by too much."
    )
