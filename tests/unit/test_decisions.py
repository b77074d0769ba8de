"""The statistics hold what they promise, on data whose truth is known."""

import random
from dataclasses import replace
from math import exp, log

import pytest

from mydyno.model import Metric, Outcome, Trial, TrialStatus, Window
from mydyno.stats.effects import contrasts, dunnett_critical
from mydyno.stats.rule import Estimator, Method, Rule, unstable
from worded import compare

RULE = Rule("c", "A", {"w": "tps"})


def campaign(truth, blocks, noise, seed, extra=lambda chance, name: ()):
    """Return outcomes of a randomised block campaign with drift shared by each block."""
    chance = random.Random(seed)
    found = []
    for block in range(blocks):
        drift = chance.gauss(0, 0.1)
        for name, effect in truth.items():
            tps = 1000 * effect * exp(drift + chance.gauss(0, noise))
            metrics = (Metric("tps", tps, "/s"), *extra(chance, name))
            trial = Trial(len(found), name, "w", block, block)
            found.append(Outcome(trial, TrialStatus.OK, Window(0, 1), metrics, machine_time_s=10))
    return found


# Two-sided 5 % points for comparisons with a control (Dunnett, 1964, table II)
@pytest.mark.parametrize(
    ("treatments", "df", "table"),
    [(1, 10, 2.23), (2, 6, 2.86), (3, 6, 3.10), (3, 10, 2.76), (3, 20, 2.54), (9, 20, 2.95)],
)
def test_critical_values_are_those_of_the_tables(treatments, df, table):
    assert dunnett_critical(treatments, df, 0.95) == pytest.approx(table, abs=0.01)


def test_one_treatment_is_the_paired_t_interval():
    logs = {
        ("A", 0): 1.0,
        ("B", 0): 1.1,
        ("A", 1): 1.5,
        ("B", 1): 1.7,
        ("A", 2): 0.9,
        ("B", 2): 0.95,
    }
    effect = contrasts(logs, "A", confidence=0.95, simultaneous=True)["B"]
    differences = [0.1, 0.2, 0.05]
    mean = sum(differences) / 3
    sd = (sum((d - mean) ** 2 for d in differences) / 2) ** 0.5
    assert effect.log_ratio == pytest.approx(mean)
    assert effect.se == pytest.approx(sd / 3**0.5)
    assert effect.critical == pytest.approx(4.3027, abs=1e-4)


@pytest.mark.statistics
@pytest.mark.parametrize(("arms", "blocks"), [("AB", 3), ("ABCD", 3), ("AB", 6), ("ABCDEFGH", 4)])
def test_nothing_is_claimed_where_nothing_is(arms, blocks):
    """The family-wise error of an interval that misses 1 stays at 5 % (400 campaigns)."""
    misses = adopted = 0
    for seed in range(400):
        found = compare(campaign(dict.fromkeys(arms, 1.0), blocks, 0.03, seed), RULE, arms)
        rows = [r for r in found.treatments if r.effect]
        misses += any(not r.effect.low <= 1 <= r.effect.high for r in rows)
        adopted += found.winner is not None
    assert misses <= 0.05 * 400 + 3 * (400 * 0.05 * 0.95) ** 0.5
    assert adopted <= misses


def test_an_effect_of_ten_percent_is_found_and_its_interval_covers_it():
    adopted = covered = 0
    for seed in range(300):
        row = compare(campaign({"A": 1.0, "B": 1.1}, 6, 0.02, seed), RULE, "AB").treatments[1]
        adopted += row.verdict == "adopt"
        covered += row.effect.low <= 1.1 <= row.effect.high
    assert adopted >= 0.97 * 300
    assert covered >= 0.95 * 300 - 3 * (300 * 0.05 * 0.95) ** 0.5


def test_one_block_never_gives_a_verdict():
    found = compare(campaign({"A": 1.0, "B": 3.0}, 1, 0.01, 1), RULE, "AB")
    assert found.winner is None
    assert found.treatments[1].verdict == "inconclusive"
    assert "1 block shows no spread" in found.warnings[0]


def test_a_treatment_without_a_difference_is_equivalent():
    row = compare(campaign({"A": 1.0, "B": 1.005}, 8, 0.01, 3), RULE, "AB").treatments[1]
    assert row.verdict == "equivalent"


def test_a_slower_treatment_is_rejected():
    row = compare(campaign({"A": 1.0, "B": 0.8}, 4, 0.02, 3), RULE, "AB").treatments[1]
    assert row.verdict == "reject"


def guard(worse, spread):
    def metrics(chance, name):
        p99 = 0.03 * (worse if name == "B" else 1.0) * exp(chance.gauss(0, spread))
        return (Metric("latency_p99_s", p99, "s"),)

    return metrics


def test_a_gain_bought_with_latency_is_rejected():
    found = compare(campaign({"A": 1.0, "B": 1.2}, 5, 0.02, 3, guard(2.0, 0.03)), RULE, "AB")
    assert found.treatments[1].verdict == "reject"
    assert found.treatments[1].guards["latency_p99_s"].low > 1


def test_a_rejection_names_its_guard_only_where_the_guard_caused_it():
    found = compare(campaign({"A": 1.0, "B": 1.2}, 5, 0.02, 3, guard(2.0, 0.03)), RULE, "AB")
    (warning,) = found.treatments[1].warnings
    assert warning.startswith("rejected for its p99 latency (latency_p99_s): 2.")
    assert warning.endswith("limit 1.10")
    assert found.sentence == (
        "Keep the baseline: 1 of 1 treatments did better, but broke a guard (p99 latency)."
    )
    slow = compare(campaign({"A": 1.0, "B": 0.8}, 5, 0.02, 3, guard(2.0, 0.03)), RULE, "AB")
    assert (slow.treatments[1].verdict, slow.treatments[1].warnings) == ("reject", [])


def spreads(baseline, other):
    def metrics(chance, name):
        sd = (other if name == "B" else baseline) * exp(chance.gauss(0, 0.05))
        return (Metric("tps_logsd", sd, ""),)

    return metrics


@pytest.mark.parametrize(
    ("gain", "sds", "verdict"),
    [
        (10.0, (0.05, 0.15), "adopt"),  # its slow seconds do six times what the fast ones did
        (1.2, (0.05, 0.15), "reject"),
        (10.0, (0.2, 1.2), "reject"),  # some of its seconds do less than the baseline's
    ],
)
def test_a_larger_spread_counts_where_it_can_be_felt(gain, sds, verdict):
    outcomes = campaign({"A": 1.0, "B": gain}, 5, 0.02, 3, spreads(*sds))
    row = compare(outcomes, RULE, "AB").treatments[1]
    assert row.verdict == verdict
    assert row.guards["tps_logsd"].low > 1.2
    assert row.unheld == (["tps_logsd"] if verdict == "adopt" else [])
    (warning,) = row.warnings
    felt = "rejected for its spread of throughput (tps_logsd): "
    assert warning.startswith(felt if verdict == "reject" else "tps_logsd: ")
    assert ("slow seconds" in warning) == (verdict == "adopt")


def test_a_guard_that_is_asked_for_is_held_whatever_the_gain():
    rule = Rule("c", "A", {"w": "tps"}, guards={"tps_logsd": 0.2})
    outcomes = campaign({"A": 1.0, "B": 10.0}, 5, 0.02, 3, spreads(0.05, 0.15))
    assert compare(outcomes, rule, "AB").treatments[1].verdict == "reject"


def test_a_guard_that_cannot_be_shown_is_reported():
    words = []
    for seed in range(20):
        outcomes = campaign({"A": 1.0, "B": 1.2}, 3, 0.005, seed, guard(1.0, 0.15))
        row = compare(outcomes, RULE, "AB").treatments[1]
        words.append(row.verdict)
        if row.verdict == "adopt" and row.guards["latency_p99_s"].high >= 1.1:
            assert "is not ruled out (margin 1.10)" in row.warnings[0]
    assert set(words) == {"adopt", "inconclusive"}  # the second where it looks broken by chance


def test_an_unstable_arm_does_not_win():
    outcomes = campaign({"A": 1.0, "B": 2.0}, 6, 0.01, 3)
    wild = []
    for o in outcomes:
        factor = (1.6 if o.trial.block % 2 else 1.0) if o.trial.treatment == "B" else 1.0
        value = o.metrics[0].value * factor
        wild.append(Outcome(o.trial, o.status, o.window, (Metric("tps", value, "/s"),)))
    found = compare(wild, RULE, "AB")
    assert found.treatments[1].verdict == "unstable"
    assert found.winner is None


@pytest.mark.parametrize("estimator", [Estimator.BLOCKS, Estimator.WINDOWS])
def test_a_host_that_slows_down_makes_no_treatment_unstable(estimator):
    outcomes = []
    for o in campaign({"A": 1.0, "B": 1.2}, 8, 0.01, 3):
        share = exp(-0.38 * o.trial.id / 15)
        metrics = (Metric("tps", (1.2 if o.trial.treatment == "B" else 1.0) * share, "/s"),)
        outcomes.append(replace(o, metrics=metrics))
    found = compare(outcomes, replace(RULE, method=Method(estimator)), "AB")
    assert found.treatments[1].verdict != "unstable"


def test_many_trials_on_an_uneven_host_make_no_treatment_unstable():
    """Their range grows with their number; that of the others does, too."""
    chance = random.Random(5)
    own = [chance.gauss(0, 0.1) for _ in range(40)]
    assert max(own) - min(own) > 0.35
    assert not unstable(own, [0.1])
    assert unstable(own, [0.02])
    assert unstable(own, [])


def test_weaker_durability_never_wins_unless_asked():
    outcomes = campaign({"A": 1.0, "B": 2.0}, 4, 0.01, 3)
    compared = compare(outcomes, Rule("c", "A", {"w": "tps"}, durability={"B": "weaker"}), "AB")
    assert compared.winner is None
    assert "durability" in compared.sentence
    asked = Rule("c", "A", {"w": "tps"}, durability={"B": "weaker"}, weaker_may_win=True)
    assert compare(outcomes, asked, "AB").winner == "B"


def test_failed_trials_are_reported_and_do_not_count():
    outcomes = campaign({"A": 1.0, "B": 1.5}, 4, 0.01, 3)
    bad = [
        Outcome(o.trial, TrialStatus.FAILED, o.window, error="mysqld: refused")
        if o.trial.treatment == "B"
        else o
        for o in outcomes
    ]
    row = compare(bad, RULE, "AB").treatments[1]
    assert row.verdict == "failed"
    assert row.effect is None
    assert "refused" in row.warnings[0]


def test_a_block_that_lost_a_trial_still_helps():
    outcomes = campaign({"A": 1.0, "B": 1.5, "C": 1.2}, 4, 0.01, 3)
    some = [o for o in outcomes if (o.trial.treatment, o.trial.block) != ("B", 2)]
    found = compare(some, RULE, "ABC")
    rows = {r.name: r for r in found.treatments}
    assert rows["B"].trials == 3
    assert abs(log(rows["B"].effect.ratio / 1.5)) < 0.05
    assert found.winner == "B"


def test_a_lower_latency_is_a_better_one():
    """Where latency is what is decided on, less is adopted and more is rejected."""
    rule = Rule("c", "A", {"w": "latency_p99_s"}, guards={})

    def timed(worse):
        outcomes = campaign({"A": 1.0, "B": 1.0}, 5, 0.01, 3, guard(worse, 0.01))
        return compare(outcomes, rule, "AB")

    better = timed(0.5)
    assert better.treatments[1].verdict == "adopt"
    assert better.treatments[1].effect.ratio == pytest.approx(0.5, rel=0.05)
    assert better.winner == "B"
    assert timed(2.0).treatments[1].verdict == "reject"
