"""The steady level of a trial that may still be warming up: averaged over all warm-up curves."""

import math
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from mydyno.analyse.steady.warmups import MOST_BINS, Array, warmup_curves

_FLAT_PRECISION = 1e-2  # of the level's prior: next to nothing is known of it
_NONE = 1e8  # precision of a factor that a model does not have
_TWO = (0.6, 0.4)  # how a factor's prior mean is shared where there are two
_TWO_SD = 0.12


@dataclass(frozen=True)
class NoiseModel:
    """The noise of means of ten seconds: first-order autocorrelation, variance of its shocks."""

    rho: float = 0.45
    variance: float = 0.003

    def whiten(self, values: Array) -> Array:
        """Return series (..., bins) with independent noise (Prais and Winsten, 1954)."""
        white = values.copy()
        white[..., 1:] -= self.rho * values[..., :-1]
        white[..., 0] *= np.sqrt(1 - self.rho**2)
        return white

    def log_constant(self, bins: int) -> float:
        """Return the part of the log evidence that only the noise decides."""
        shocks = bins * math.log(2 * math.pi * self.variance)
        return (math.log1p(-(self.rho**2)) - shocks) / 2

    @property
    def columns(self) -> Array:
        """Return the curves' columns, whitened (models, bins, 3)."""
        return _whitened(self.rho)[0]

    def information(self, bins: int) -> Array:
        """Return X'X over the variance for a number of bins (models, 3, 3)."""
        return np.asarray(_whitened(self.rho)[1][bins - 1] / self.variance)


@cache
def _whitened(rho: float) -> tuple[Array, Array]:
    """Return the curves' whitened columns, and X'X for each number of bins less one."""
    columns = NoiseModel(rho).whiten(warmup_curves().columns.transpose(0, 2, 1)).transpose(0, 2, 1)
    squares = np.einsum("mbi,mbj->bmij", columns, columns)
    return columns, np.asarray(np.cumsum(squares, axis=0))


@cache
def _side_by_side(rho: float) -> Array:
    """Return the curves' whitened columns as (bins, models x 3), to be multiplied at once."""
    columns = _whitened(rho)[0].transpose(1, 0, 2)
    return np.ascontiguousarray(columns.reshape(MOST_BINS, -1))


@dataclass(frozen=True)
class Prior:
    """Prior of the warm-ups: the log of what is missing at first, and the curves' weights."""

    missing: float = 0.2
    missing_sd: float = 0.3
    log_weight: Array | None = None
    _terms: "dict[tuple[NoiseModel, int], PosteriorTerms]" = field(
        default_factory=dict, repr=False, compare=False
    )

    def terms(self, noise: NoiseModel, bins: int) -> "PosteriorTerms":
        """Return what the posterior needs besides the trials; computed once."""
        if (noise, bins) not in self._terms:
            precision = noise.information(bins) + self.precisions[:, :, None] * np.eye(3)
            covariance, determinant = _inverse(precision)
            log_odds = np.log(self.precisions).sum(axis=1) - np.log(determinant)
            log_odds = np.where(
                warmup_curves().identifiable(bins), log_odds / 2 + self.weights, -np.inf
            )
            within = np.ascontiguousarray(covariance[:, 0, 0])
            self._terms[noise, bins] = PosteriorTerms(covariance, within, log_odds)
        return self._terms[noise, bins]

    @cached_property
    def weights(self) -> Array:
        """Return the log prior probability of each model."""
        return warmup_curves().log_weight if self.log_weight is None else self.log_weight

    @cached_property
    def means(self) -> Array:
        """Return each model's prior means (models, 3)."""
        means = np.zeros((len(warmup_curves().free), 3))
        means[warmup_curves().free == 1, 1] = self.missing
        means[warmup_curves().free == 2, 1:] = np.multiply(_TWO, self.missing)  # noqa: PLR2004
        return means

    @cached_property
    def precisions(self) -> Array:
        """Return each model's prior precisions (models, 3)."""
        free = warmup_curves().free
        found = np.full((len(free), 3), _NONE)
        found[:, 0] = _FLAT_PRECISION
        found[free == 1, 1] = self.missing_sd**-2
        found[free == 2, 1:] = _TWO_SD**-2  # noqa: PLR2004
        return found

    @cached_property
    def expected(self) -> tuple[Array, Array]:
        """Return each model's precisions times its means (models, 3), and that times the means."""
        weighted = self.precisions * self.means
        return weighted, (weighted * self.means).sum(axis=1)


def _inverse(symmetric: Array) -> tuple[Array, Array]:
    """Return inverses and determinants of matrices (n, 3, 3) by cofactors, faster than LAPACK."""
    (a, b, c), (_, d, e), (_, _, f) = symmetric.transpose(1, 2, 0)
    aa, ab, ac = d * f - e * e, c * e - b * f, b * e - c * d
    bc = b * c - a * e
    determinant = a * aa + b * ab + c * ac
    adjoint = np.array([[aa, ab, ac], [ab, a * f - c * c, bc], [ac, bc, a * d - b * b]])
    return np.asarray((adjoint / determinant).transpose(2, 0, 1)), determinant


@dataclass(frozen=True, slots=True)
class PosteriorTerms:
    """For each curve: covariance of its factors, variance of the level, and prior log odds."""

    covariance: Array
    within: Array
    log_odds: Array


@dataclass(frozen=True, slots=True)
class Fit:
    """Posterior of trials of equal length; arrays are by trial, those by model have a second axis.

    `level` is the posterior mean of the steady log response, `variance` its variance: that of the
    noise, and that between the possible warm-up curves.
    """

    bins: int
    level: Array
    variance: Array
    weight: Array
    factors: Array
    log_evidence: Array


@dataclass(frozen=True, slots=True)
class TrialStatistics:
    """Sufficient statistics of trials of equal length: bins, sums of squares, and X'y by model."""

    bins: int
    squares: Array
    projected: Array


def statistics_of(series: Array, noise: NoiseModel) -> TrialStatistics:
    """Return the sufficient statistics of `series` (trials, bins) under this noise."""
    bins = min(series.shape[1], MOST_BINS)
    white = noise.whiten(series[:, :bins])
    projected = (white @ _side_by_side(noise.rho)[:bins]).reshape(len(white), -1, 3)
    squares = (white * white).sum(axis=1)
    return TrialStatistics(bins, squares / noise.variance, projected / noise.variance)


def fit(series: Array, noise: NoiseModel, prior: Prior) -> Fit:
    """Return the posterior of the steady levels; `series` (trials, bins) are logs of 10 s means."""
    return posterior(statistics_of(series, noise), noise, prior)


def posterior(seen: TrialStatistics, noise: NoiseModel, prior: Prior) -> Fit:
    """Return the posterior, averaged over all curves by their evidence.

    Every model is linear with normal noise and a normal prior, so that posterior and evidence are
    in closed form (Hoeting et al., 1999, eq. 1 to 3, for the average).
    """
    terms = prior.terms(noise, seen.bins)
    expected, squares = prior.expected
    projected = seen.projected + expected
    factors = np.einsum("mij,rmj->rmi", terms.covariance, projected)
    misfit = seen.squares[:, None] + squares
    misfit -= np.einsum("rmi,rmi->rm", factors, projected)
    score = terms.log_odds - misfit / 2
    highest = score.max(axis=1)
    weight = np.exp(score - highest[:, None])
    total = weight.sum(axis=1)
    weight /= total[:, None]
    levels = factors[:, :, 0]
    level = np.einsum("rm,rm->r", weight, levels)
    within = weight @ terms.within
    between = np.einsum("rm,rm->r", weight, (levels - level[:, None]) ** 2)
    return Fit(
        bins=seen.bins,
        level=level,
        variance=within + between,
        weight=weight,
        factors=factors,
        log_evidence=highest + np.log(total) + noise.log_constant(seen.bins),
    )


def left(found: Fit) -> Array:
    """Return how far each bin of each trial is expected to lie from the steady level (logs)."""
    columns = warmup_curves().columns[:, : found.bins, 1:]
    distance = np.einsum("mbi,rmi,rm->rb", columns, found.factors[:, :, 1:], found.weight)
    return np.asarray(distance)
