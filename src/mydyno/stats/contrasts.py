"""Effects against the baseline from randomised blocks: estimate, standard error, critical value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from math import exp, expm1

_MOST = 300.0  # e^300 is 1e130: products and quotients of such ratios are finite as well


def ratio(log_ratio: float) -> float:
    """Return the ratio whose natural logarithm this is, from 1e-130 to 1e130."""
    return exp(min(max(log_ratio, -_MOST), _MOST))


def change(log_ratio: float) -> float:
    """Return the ratio less one."""
    return expm1(min(max(log_ratio, -_MOST), _MOST))


Cell = tuple[str, int]  # treatment, block


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
    shared = _paired(logs, baseline)
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


def _paired(logs: Mapping[Cell, float], baseline: str) -> dict[str, int]:
    """Return for each treatment in how many blocks it and the baseline were both measured."""
    counts: dict[str, int] = {}
    for name, block in logs:
        if name != baseline and (baseline, block) in logs:
            counts[name] = counts.get(name, 0) + 1
    enough = 2
    return {name: n for name, n in counts.items() if n >= enough}


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
