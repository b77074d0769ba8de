"""Effects and their intervals: within blocks, valid at any time, and as forecast."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, expm1, inf, sqrt
from typing import TypeVar

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
    subtracted from the estimate of the best of several.
    """

    log_ratio: float
    se: float
    critical: float
    pairs: int
    simultaneous: float = 0.0
    bias: float = 0.0

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
_MOST_BLOCKS = 200  # blocks


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a campaign of blocks: `arms` are the treatments beside the baseline.

    `blocks` is the most of them, None where only a budget ends it; each holds the baseline
    `baselines` times.  `checks` come before the first block, `after` are the most trials that
    follow the last one.  `early`: decided treatments leave it.
    """

    arms: int
    workloads: int
    blocks: int | None
    checks: int = 0
    baselines: int = 1
    after: int = 0
    early: bool = False

    @property
    def block(self) -> int:
        """Return the number of trials in a block of all treatments."""
        return self.workloads * (self.arms + self.baselines)


def needed_blocks(size: Size, margin_log: float, noise_sd: float, *, anytime: bool) -> int:
    """Return how many blocks show a difference of the margin, for trials of this noise (logs)."""
    every = (n for n in range(2, _MOST_BLOCKS))
    return next(
        (n for n in every if reach(size, n, noise_sd, anytime=anytime) <= margin_log), _MOST_BLOCKS
    )


def expected_sd(seen: list[float]) -> float:
    """Return the expected noise, given the log levels of some trials of one treatment."""
    if not seen:
        return DEFAULT_TRIAL_SD
    mean = sum(seen) / len(seen)
    squares = sum((v - mean) ** 2 for v in seen) + _NOISE_PRIOR_DF * DEFAULT_TRIAL_SD**2
    return sqrt(squares / (len(seen) - 1 + _NOISE_PRIOR_DF))


def reach(size: Size, blocks: int, noise_sd: float, *, anytime: bool) -> float:
    """Return half the width of an interval after `blocks` blocks with all treatments in, as a log.

    Infinite where so few blocks have no interval.  `anytime`: the interval holds at every look.
    """
    baselines = blocks * size.baselines + size.checks
    if anytime:
        factor = critical(blocks, (blocks - 1) * size.arms + baselines - 1, _ALPHA)
    else:
        df = (blocks - 1) * size.arms
        factor = dunnett_critical(size.arms, df, 1 - _ALPHA) if df > 0 else inf
    return inf if factor == inf else factor * noise_sd * sqrt(1 / blocks + 1 / baselines)
