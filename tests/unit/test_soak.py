"""The winner's long trial: when it is run, and what it shows."""

from dataclasses import replace

import numpy as np
import pytest

from mydyno.campaign.designs import Soak
from mydyno.model import Metric, Outcome, Series, Trial, TrialStatus, Window
from mydyno.report.words import words
from mydyno.stats import Rule
from mydyno.stats.compare import soaked
from worded import compare

RULE = Rule("c", "base", {"w": "tps"}, guards={})


def outcome(number, treatment="base", rates=(), *, soak=False, status=TrialStatus.OK):
    times = tuple(10.0 * (i + 1) for i in range(len(rates)))
    series = (Series("tps", "/s", times, tuple(map(float, rates))),)
    trial = Trial(number, treatment, "w", number, 7, soak=soak)
    metrics = [Metric("tps", float(np.mean(rates)) if len(rates) else 100.0, "/s")]
    return Outcome(trial, status, Window(0.0, 10.0 * len(rates)), metrics, series, 600.0)


def rates(change, bins=360, seed=1):
    noise = np.random.default_rng(seed).normal(0, 0.03, bins)
    return 1000 * np.exp(noise + change * np.linspace(0, 1, bins))


def test_the_winner_is_soaked_once_after_all_trials():
    soak = Soak(3600.0, lambda _: "fast")
    before = [outcome(0), outcome(1, "fast")]
    trial = soak.next(before)
    assert (trial.id, trial.treatment, trial.workload, trial.soak) == (2, "fast", "w", True)
    assert soak.next([*before, outcome(2, "fast", soak=True)]) is None
    assert soak.stop.warmup_s + soak.stop.window_s == pytest.approx(3600.0)


def test_without_a_winner_there_is_nothing_to_soak():
    assert Soak(3600.0, lambda _: None).next([outcome(0)]) is None
    assert Soak(3600.0, lambda _: "fast").next([]) is None


@pytest.mark.parametrize(("change", "wanted"), [(0.0, "held"), (-0.2, "got worse"), (0.2, "held")])
def test_an_effect_that_fades_is_reported(change, wanted):
    warning = words(soaked([outcome(0, "fast", rates(change), soak=True)], RULE)[0])
    assert wanted in warning
    assert "60 minutes" in warning


def test_a_latency_that_rises_got_worse_by_what_it_rose():
    slower = outcome(0, "fast", rates(0.2), soak=True)
    (series,) = slower.series
    rule = Rule("c", "base", {"w": "latency_p99_s"}, guards={})
    (found,) = soaked([replace(slower, series=(replace(series, name="latency_p99_s"),))], rule)
    assert found.code == "soak-worse"
    assert 0.05 < found.figures["low"] < found.figures["change"] < found.figures["high"]


def test_a_soak_that_allows_for_a_fall_of_more_than_the_margin_did_not_hold():
    coarse = 1000 * np.exp(np.random.default_rng(3).normal(0, 0.3, 360))
    (found,) = soaked([outcome(0, "fast", coarse, soak=True)], RULE)
    assert found.code == "soak-unclear"
    assert found.figures["low"] < -RULE.margin < 0 < found.figures["high"]
    assert "does not show whether fast holds its throughput" in words(found)


def test_an_effect_that_lasts_is_seldom_reported_as_fading():
    findings = [soaked([outcome(0, "a", rates(0.0, seed=s), soak=True)], RULE) for s in range(200)]
    assert sum(found.code == "soak-worse" for (found,) in findings) <= 4


def test_a_short_soak_and_a_failed_one_are_named():
    (short,) = soaked([outcome(0, "a", rates(0, 10), soak=True)], RULE)
    assert "too short" in words(short)
    lost = replace(outcome(0, "a", soak=True, status=TrialStatus.FAILED), error="no space left")
    (failed,) = soaked([lost], RULE)
    assert words(failed) == "The soak of a failed: no space left."
    assert soaked([outcome(0)], RULE) == []


def test_a_soak_is_compared_with_nothing():
    some = [outcome(i, name, rates(0, 20, i)) for i, name in enumerate(["base", "fast"] * 3)]
    soak = outcome(6, "fast", rates(1.0), soak=True)
    with_it, without = (compare(o, RULE, ["base", "fast"]) for o in ([*some, soak], some))
    assert with_it.treatments == without.treatments
    assert with_it.machine_time_s == without.machine_time_s + 600.0
    assert "held" in with_it.soak
