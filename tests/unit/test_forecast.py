"""What a campaign will cost and show, before it is run."""

from math import log, log1p

import numpy as np
import pytest

from mydyno.stats.effects import DEFAULT_TRIAL_SD, Size, critical, expected_sd, forecast, often

MARGIN = log1p(0.03)


def test_the_detectable_difference_is_the_reach_of_the_last_interval():
    size = Size(arms=4, workloads=1, blocks=6, checks=3)
    found = forecast(size, MARGIN, 0.01, 100.0)
    baselines = 6 * often(size) + 3
    reach = critical(6, 5 * 4 + baselines - 1, 0.05) * 0.01 * (1 / 6 + 1 / baselines) ** 0.5
    assert log(found.detectable) == pytest.approx(reach)


def test_quieter_hosts_and_wider_margins_cost_less():
    size = Size(arms=10, workloads=1, blocks=12, checks=3)
    usual = forecast(size, MARGIN)
    quiet, wide = forecast(size, MARGIN, 0.005), forecast(size, log1p(0.10))
    assert quiet.trials < usual.trials
    assert wide.trials < usual.trials
    assert quiet.detectable < usual.detectable == wide.detectable
    assert usual.seconds == usual.trials * usual.trial_s


def test_what_is_needed_may_be_more_than_there_is():
    found = forecast(Size(arms=1, workloads=2, blocks=3, checks=3), MARGIN, 0.05)
    assert found.needed > 3
    assert found.trials == 2 * (3 + 3 * 2)


def test_the_noise_is_that_of_the_checks_once_there_are_many():
    assert expected_sd([]) == DEFAULT_TRIAL_SD
    assert expected_sd([1.0]) == DEFAULT_TRIAL_SD
    levels = np.random.default_rng(1).normal(0, 0.005, 200)
    assert expected_sd(list(levels)) == pytest.approx(0.005, rel=0.15)
