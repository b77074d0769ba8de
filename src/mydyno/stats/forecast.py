"""Forecast of a campaign: detectable difference, trials and time, before it is run."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, inf, isqrt, sqrt

_G = 0.5  # prior precision of the effect, in units of one observation's precision
_PRIOR_DF = 8.0  # prior degrees of freedom of the pooled variance


def critical(n: int, df: float, alpha: float, g: float = _G) -> float:
    """Return the half width of the interval, in standard errors of a mean of `n` values.

    The confidence sequence of the t statistic with a normal prior of variance ``sigma^2 / g`` on
    the effect (Lindon, Ham, Tingley and Bojinov, 2022, theorem 2, for one coefficient): valid at
    all `n` together.  Infinite while `n` and `df` are too small for a finite interval.
    """
    r = g / (g + n)
    k = (1 / (alpha * sqrt(r))) ** (2 / (df + 1))
    if k * r >= 1:
        return inf
    return sqrt(df * (k - 1) / (1 - k * r))


def moderated(own: Sequence[float], pooled_variance: float, prior_df: float = _PRIOR_DF) -> float:
    """Return the variance of one arm's observations, shrunk towards the pooled one.

    ``(d0 s0^2 + d s^2) / (d0 + d)`` (Smyth, 2004, eq. 3).
    """
    if len(own) < 2:  # noqa: PLR2004 - a variance needs two values
        return pooled_variance
    mean = sum(own) / len(own)
    squares = sum((value - mean) ** 2 for value in own)
    return (prior_df * pooled_variance + squares) / (prior_df + len(own) - 1)


DEFAULT_TRIAL_SD = 0.02  # standard deviation of trials of one treatment (logs), until measured
TRIAL_S = 320.0  # length of a trial with its restart, until measured
_NOISE_PRIOR_DF = 2.0  # prior weight of the default noise, in trials
_ALPHA = 0.05
_MOST = 200  # blocks


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a race: treatments beside the baseline, workloads, most blocks, checks."""

    arms: int
    workloads: int
    blocks: int
    checks: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a race can show and what it costs.

    `detectable` is a ratio above 1; `needed` blocks would show equivalence within the margin;
    `seconds` is the longest time; a race with large differences takes less.
    """

    noise_sd: float
    trial_s: float
    detectable: float
    needed: int
    trials: int
    seconds: float


def forecast(
    size: Size, margin_log: float, noise_sd: float = DEFAULT_TRIAL_SD, trial_s: float = TRIAL_S
) -> Forecast:
    """Return the forecast for trials whose standard deviation is `noise_sd` (logs)."""
    needed = next((n for n in range(2, _MOST) if _reach(size, n, noise_sd) <= margin_log), _MOST)
    trials = size.workloads * (size.checks + min(size.blocks, needed) * (size.arms + often(size)))
    return Forecast(
        noise_sd,
        trial_s,
        exp(_reach(size, size.blocks, noise_sd)),
        needed,
        trials,
        trials * trial_s,
    )


def often(size: Size) -> int:
    """Return the number of baseline trials in a block (Dunnett, 1955)."""
    return max(1, isqrt(size.arms))


def expected_sd(seen: list[float]) -> float:
    """Return the expected noise, given the log levels of some trials of one treatment."""
    if not seen:
        return DEFAULT_TRIAL_SD
    mean = sum(seen) / len(seen)
    squares = sum((v - mean) ** 2 for v in seen) + _NOISE_PRIOR_DF * DEFAULT_TRIAL_SD**2
    return sqrt(squares / (len(seen) - 1 + _NOISE_PRIOR_DF))


def _reach(size: Size, blocks: int, noise_sd: float) -> float:
    """Return half the width of an interval after `blocks` blocks with all treatments in."""
    baselines = blocks * often(size) + size.checks
    df = (blocks - 1) * size.arms + baselines - 1
    factor = critical(blocks, df, _ALPHA)
    return inf if factor == inf else factor * noise_sd * sqrt(1 / blocks + 1 / baselines)
