"""Effects and their intervals: within blocks, and as forecast."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import exp, expm1, inf, sqrt
from typing import TypeVar

from mydyno.stats.looks import each_of, nominal

_MOST = 300.0  # e^300 is 1e130: products and quotients of such ratios are finite as well


def ratio(log_ratio: float) -> float:
    """Return the ratio whose natural logarithm this is, from 1e-130 to 1e130."""
    return exp(min(max(log_ratio, -_MOST), _MOST))


def change(log_ratio: float) -> float:
    """Return the ratio less one."""
    return expm1(min(max(log_ratio, -_MOST), _MOST))


K = TypeVar("K")
V = TypeVar("V")


def by_key(pairs: Iterable[tuple[K, V]]) -> dict[K, list[V]]:
    """Return the values of each key, both in the order in which they came."""
    found: dict[K, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


Cell = tuple[str, int]  # treatment, block
_FEWEST = 2  # blocks that have a treatment and the baseline


@dataclass(frozen=True, slots=True)
class Effect:
    """A treatment's log ratio against the baseline.

    `critical` times `se` is the half width of the interval; `simultaneous` is the critical value
    that holds for all treatments of the workload together: the probability of any false adoption
    is at most one minus the confidence.  `bias` is the selection bias (winner's curse) that is
    subtracted from the estimate of the best of several.  `promise` is the probability that the
    lower bound is above 0 at the campaign's last look, if the log ratio is what it seems to be;
    `share` is that of the campaign which has passed.
    """

    log_ratio: float
    se: float
    critical: float
    pairs: int
    simultaneous: float = 0.0
    bias: float = 0.0
    promise: float = 1.0
    share: float = 1.0

    @property
    def interval(self) -> tuple[float, float, float]:
        """Return ratio, low and high."""
        half = self.critical * self.se
        low, high = ratio(self.log_ratio - half), ratio(self.log_ratio + half)
        return ratio(self.log_ratio - self.bias), low, high

    @property
    def lower_bound(self) -> float:
        """Return the simultaneous lower bound of the log ratio."""
        return self.log_ratio - max(self.simultaneous, self.critical) * self.se

    def inverse(self) -> "Effect":
        """Return the effect on the response's inverse."""
        return replace(self, log_ratio=-self.log_ratio, bias=-self.bias)


def contrasts(
    logs: Mapping[Cell, float], baseline: str, *, confidence: float, simultaneous: bool
) -> dict[str, Effect]:
    """Return each treatment's effect; empty where fewer than two blocks have it and the baseline.

    The model is log response = treatment + block + error, one error variance, least squares
    (Cochran and Cox, 1957, ch. 4).  With one treatment this is the paired t interval.
    """
    pairs = Counter(name for name, block in logs if name != baseline and (baseline, block) in logs)
    shared = {name: n for name, n in pairs.items() if n >= _FEWEST}
    if not shared:
        return {}
    from numpy import array, linalg, zeros  # noqa: PLC0415 - 0.1 s that most commands do not need

    used = [cell for cell in logs if cell[0] == baseline or cell[0] in shared]
    names = sorted(shared)
    blocks = sorted({block for _, block in used})
    x = zeros((len(used), len(names) + len(blocks)))
    for row, (name, block) in enumerate(used):
        x[row, len(names) + blocks.index(block)] = 1
        if name != baseline:
            x[row, names.index(name)] = 1
    y = array([logs[cell] for cell in used])
    beta = linalg.lstsq(x, y, rcond=None)[0]
    df = len(used) - int(linalg.matrix_rank(x))
    if df < 1:
        return {}
    residual = y - x @ beta
    covariance = linalg.pinv(x.T @ x) * float(residual @ residual) / df
    critical = dunnett_critical(len(names) if simultaneous else 1, df, confidence)
    return {
        name: Effect(float(beta[i]), float(covariance[i, i]) ** 0.5, critical, shared[name])
        for i, name in enumerate(names)
    }


def student(error: float, df: float) -> float:
    """Return the critical value of a two-sided interval that misses so often."""
    from scipy.special import stdtrit  # noqa: PLC0415 - as below

    return float(-stdtrit(df, error / 2))


@cache
def dunnett_critical(treatments: int, df: int, confidence: float) -> float:
    """Return the two-sided critical value of `treatments` comparisons with one control.

    Equal group sizes, so the comparisons correlate at 0.5: the maximum of |T| is integrated
    over the control's error and the error of the standard deviation (Dunnett, 1955, eq. 2).
    """
    # scipy.special holds the same functions as scipy.stats, which takes a second to import
    from scipy.special import gammaincinv, ndtr, stdtrit  # noqa: PLC0415

    if treatments == 1:
        return float(stdtrit(df, (1 + confidence) / 2))
    from numpy import linspace, polynomial, sqrt  # noqa: PLC0415
    from scipy.optimize import brentq  # noqa: PLC0415

    z, wz = polynomial.hermite_e.hermegauss(64)
    quantiles = (linspace(0, 1, 201)[1:] + linspace(0, 1, 201)[:-1]) / 2
    s = sqrt(2 * gammaincinv(df / 2, quantiles) / df)  # a chi-square quantile

    def excess(c: float) -> float:
        upper = ndtr(z[:, None] + sqrt(2) * c * s[None, :])
        lower = ndtr(z[:, None] - sqrt(2) * c * s[None, :])
        inner = ((upper - lower) ** treatments).mean(axis=1)
        return float((wz * inner).sum() / wz.sum()) - confidence

    return float(brentq(excess, 0.5, 500.0))


DEFAULT_TRIAL_SD = 0.02  # standard deviation of trials of one treatment (logs), until measured
TRIAL_S = 320.0  # length of a trial with its restart, until measured
_START_SD = 0.015  # the part of it that is due to the server's start
_SECOND_VARIANCE = 0.034  # variance of a window's mean, times its length in seconds
_NOISE_PRIOR_DF = 2.0  # prior weight of the default noise, in trials
_KNOWN_DF = 3  # degrees of freedom that the prior of the noise is worth in an interval, about
_ALPHA = 0.05
_MISSED = 0.2  # share of campaigns that do not show what is promised
_MOST_BLOCKS = 200  # blocks


def noise_of(window_s: float) -> float:
    """Return the expected standard deviation of trials whose windows are so long, as logs."""
    return sqrt(_START_SD**2 + _SECOND_VARIANCE / window_s)


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a campaign of blocks: `arms` are the treatments beside the baseline.

    `blocks` is the most of them, None where only a budget ends it; each holds the baseline
    `baselines` times.  `checks` come before the first block, `after` are the most trials that
    follow the last one, `spare` the most that repeat disturbed ones.  `early`: decided treatments
    leave it.
    """

    arms: int
    workloads: int
    blocks: int | None
    checks: int = 0
    baselines: int = 1
    after: int = 0
    spare: int = 0
    early: bool = False

    @property
    def block(self) -> int:
        """Return the number of trials in a block of all treatments."""
        return self.workloads * (self.arms + self.baselines)


def shown_by(critical: float, df: float, se: float) -> float:
    """Return the effect (log) that about four of five campaigns with this critical value show.

    An effect as large as half the interval's width is shown by every other campaign only.
    """
    return (critical + student(2 * _MISSED, df)) * se


def needed_blocks(size: Size, margin_log: float, noise_sd: float, *, looking: bool) -> int:
    """Return how many blocks show a difference of the margin, for trials of this noise (logs)."""
    every = range(2, _MOST_BLOCKS)
    first = bisect_left(
        every, 1, key=lambda n: reach(size, n, noise_sd, looking=looking) <= margin_log
    )
    return every[first] if first < len(every) else _MOST_BLOCKS


def expected_sd(seen: list[float], assumed_sd: float = DEFAULT_TRIAL_SD) -> float:
    """Return the expected noise, given the log levels of some trials of one treatment."""
    if not seen:
        return assumed_sd
    mean = sum(seen) / len(seen)
    squares = sum((v - mean) ** 2 for v in seen) + _NOISE_PRIOR_DF * assumed_sd**2
    return sqrt(squares / (len(seen) - 1 + _NOISE_PRIOR_DF))


def reach(size: Size, blocks: int, noise_sd: float, *, looking: bool) -> float:
    """Return the effect (log) that four of five campaigns of `blocks` blocks show.

    All treatments stay in; infinite where so few blocks have no interval.  `looking`: treatments
    may leave after each block (`mydyno.stats.looks`).
    """
    baselines = blocks * size.baselines + size.checks
    if blocks < _FEWEST:
        return inf
    if looking:
        df = (blocks - 1) * size.arms + baselines - 1 + _KNOWN_DF
        correlation = round(blocks / (blocks + baselines), 1)
        alpha = min(2 * each_of(size.arms, correlation, _ALPHA), _ALPHA)
        looks = range(_FEWEST, blocks + 1)
        factor = student(nominal(looks, [n / blocks for n in looks], alpha), df)
    else:
        df = (blocks - 1) * size.arms
        factor = dunnett_critical(size.arms, df, 1 - _ALPHA)
    return shown_by(factor, df, noise_sd * sqrt(1 / blocks + 1 / baselines))
