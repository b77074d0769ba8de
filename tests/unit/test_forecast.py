"""What a campaign can show, before it is run."""

from dataclasses import replace
from math import inf, log1p

import numpy as np
import pytest

from mydyno.stats.effects import (
    DEFAULT_TRIAL_SD,
    Size,
    contrasts,
    dunnett_critical,
    expected_sd,
    needed_blocks,
    reach,
    student,
)
from mydyno.stats.looks import each_of, nominal

MARGIN = log1p(0.03)
SIZE = Size(arms=4, workloads=1, blocks=6, checks=3, baselines=2, early=True)


def test_the_detectable_difference_is_beyond_the_simultaneous_bound():
    baselines = 6 * 2 + 3
    looks = range(2, 7)
    alpha = 2 * each_of(4, round(6 / (6 + baselines), 1), 0.05)
    error = nominal(looks, [n / 6 for n in looks], alpha)
    se = 0.01 * (1 / 6 + 1 / baselines) ** 0.5
    df = 5 * 4 + baselines - 1 + 3
    bound = student(error, df)
    assert reach(SIZE, 6, 0.01, looking=True) == pytest.approx((bound + student(0.4, df)) * se)
    assert bound > student(0.05, 37)


def test_complete_blocks_of_a_given_number_show_more():
    complete = replace(SIZE, checks=0, baselines=1, early=False)
    shown = (dunnett_critical(4, 5 * 4, 0.95) + student(0.4, 5 * 4)) * 0.01 * (2 / 6) ** 0.5
    assert reach(complete, 6, 0.01, looking=False) == pytest.approx(shown)
    assert shown < reach(complete, 6, 0.01, looking=True)


def test_four_of_five_campaigns_show_what_a_plan_promises():
    chance, noise_sd = np.random.default_rng(7), 0.02
    size = Size(arms=1, workloads=1, blocks=8, baselines=1)
    shown = 0
    for _ in range(600):
        logs = {(n, b): chance.normal(0, noise_sd) for n in ("base", "a") for b in range(8)}
        more = {("a", b): logs["a", b] + reach(size, 8, noise_sd, looking=False) for b in range(8)}
        effect = contrasts(logs | more, "base", confidence=0.95, simultaneous=True)["a"]
        shown += effect.interval[1] > 1.0
    assert 0.75 < shown / 600 < 0.85


def test_one_block_shows_nothing():
    assert reach(SIZE, 1, 0.01, looking=False) == inf
    assert reach(replace(SIZE, arms=1, checks=0), 1, 0.01, looking=True) == inf


def test_quieter_hosts_and_wider_margins_need_fewer_blocks():
    usual = needed_blocks(SIZE, MARGIN, 0.02, looking=True)
    assert needed_blocks(SIZE, MARGIN, 0.005, looking=True) < usual
    assert needed_blocks(SIZE, log1p(0.10), 0.02, looking=True) < usual


def test_the_noise_is_that_of_the_checks_once_there_are_many():
    assert expected_sd([]) == DEFAULT_TRIAL_SD
    assert expected_sd([1.0]) == DEFAULT_TRIAL_SD
    levels = np.random.default_rng(1).normal(0, 0.005, 200)
    assert expected_sd(list(levels)) == pytest.approx(0.005, rel=0.15)
