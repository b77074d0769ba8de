"""The level that a trial reaches: its warm-up is a curve, its noise an autoregression."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from mydyno.stats.estimates import BIN_S

Array = NDArray[np.float64]
MOST_BINS = 120  # 20 minutes; what has not settled by then is not steady

_COLD = 0.4  # the share that is missing at first, where the curve of the logarithm depends on it
_TAUS_S = np.geomspace(4.0, 600.0, 24)
_FAST_S = np.geomspace(6.0, 150.0, 14)
_SLOWER = (3.0, 5.0, 8.0)  # the second time scale, in units of the first
_PARTS = (0.6, 0.8, 0.9)  # of the rise that happens at the first time scale
_LONGEST_S = 900.0
_EDGES = np.unique(np.round(np.geomspace(1, 48, 22)).astype(int))  # bins before a step
_FIRST = np.unique(np.round(np.geomspace(1, 12, 10)).astype(int))  # bins before the first of three
_LATER = tuple((a, b) for a in (1.8, 2.4, 3.2) for b in (3.4, 4.4, 5.6) if b > 1.2 * a)
_STEPS = (0.5, 0.25, 0.25)  # of the rise, in three steps
_MOST_LEFT = 0.5  # of what is missing at first, at the end of a trial
_SEEN = 2  # bins after a step that are needed to separate it from noise
# How likely each family is before anything was seen.
_FAMILIES = {"flat": 0.5, "exponential": 0.22, "two": 0.13, "step": 0.05, "steps": 0.10}


@dataclass(frozen=True, slots=True)
class WarmupCurves:
    """`columns` (models, bins, 3): the level, and one or two curves that end at 0 (else zeros).

    Every curve is -1 at the start and 0 at the end, so that its factor is the log of what is
    missing at first.  `free` is the number of factors of a model; `seen` the number of bins from
    which on it can be identified; `log_weight` the log of its prior probability.
    """

    columns: Array
    free: NDArray[np.int64]
    seen: NDArray[np.int64]
    log_weight: Array

    def identifiable(self, bins: int) -> NDArray[np.bool_]:
        """Return a mask of the curves that a trial of this many bins can identify.

        Most of the rise lies within such a trial; the posterior of a slower curve would only
        repeat its prior.
        """
        left = -self.columns[:, bins - 1, 1:].sum(axis=1)
        return np.asarray((self.seen <= bins) & (left <= _MOST_LEFT))


@cache
def warmup_curves() -> WarmupCurves:
    """Return all curves; they are computed once."""
    found = list(_all())
    families = [family for family, *_ in found]
    weight = [np.log(_FAMILIES[f] / families.count(f)) for f in families]
    columns = [[np.ones(MOST_BINS), one, two] for _, one, two, _ in found]
    free = [int(one.any()) + int(two.any()) for _, one, two, _ in found]
    return WarmupCurves(
        columns=np.array(columns).transpose(0, 2, 1),
        free=np.array(free),
        seen=np.array([seen for *_, seen in found]),
        log_weight=np.array(weight),
    )


def _all() -> Iterator[tuple[str, Array, Array, int]]:
    times = (np.arange(MOST_BINS) + 0.5) * BIN_S
    none = np.zeros(MOST_BINS)
    yield "flat", none, none, 0
    for tau in _TAUS_S:
        yield "exponential", _log(np.exp(-times / tau)), none, 0
    for fast in _FAST_S:
        for slower in _SLOWER:
            if fast * slower > _LONGEST_S:
                continue
            for part in _PARTS:
                left = part * np.exp(-times / fast)
                left += (1 - part) * np.exp(-times / (fast * slower))
                yield "two", _log(left), none, 0
    yield from _one_or_two_steps(none)
    for first in _FIRST:
        for later in _LATER:
            edges = (first, round(first * later[0]), round(first * later[1]))
            curve = sum(p * _before(e) for p, e in zip(_STEPS, edges, strict=True))
            yield "steps", np.asarray(curve), none, int(edges[-1]) + _SEEN


def _one_or_two_steps(none: Array) -> Iterator[tuple[str, Array, Array, int]]:
    for edge in _EDGES:
        yield "step", _before(edge), none, int(edge) + _SEEN
    some = _EDGES[::2]
    for i, edge in enumerate(some):
        for other in some[i + 1 :]:
            yield "step", _before(edge), _before(other), int(other) + _SEEN


def _before(edge: int) -> Array:
    return np.where(np.arange(MOST_BINS) < edge, -1.0, 0.0)


def _log(left: Array) -> Array:
    """Return the curve of a logarithm of which the share `left`, from 1 to 0, is still missing."""
    return np.asarray(np.log1p(-_COLD * left) / -np.log1p(-_COLD))


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


_ROUNDS = 12
_PSEUDO = 5.0  # trials that the first weights are worth
_PSEUDO_MISSING = 2.0  # and the first guess of what is missing
_PSEUDO_BINS = 0.5  # that the first variance is worth
_LEAST_SD = 0.04
_RHOS = (0.0, 0.2, 0.45, 0.65, 0.8)
_SOME_RHOS = (0.2, 0.45)
_TURNS = 2
_FEWEST = 3  # bins: a shorter trial is not used


@dataclass(frozen=True)
class Learned:
    """What a campaign's trials have in common."""

    noise: NoiseModel = field(default_factory=NoiseModel)
    prior: Prior = field(default_factory=Prior)

    def variance_within(self, found: Fit, bins: int) -> float:
        """Return the variance of the level that would be left after `bins`, the curve being known.

        It is the mean over the trials, weighted by the squared probability of each curve: with
        more bins, likely curves become more likely.
        """
        variances = self.prior.terms(self.noise, bins).within
        likely = found.weight**2
        likely /= likely.sum(axis=1, keepdims=True)
        return float(likely.mean(axis=0) @ variances)

    def usually_left(self) -> Array:
        """Return how far each bin of a usual trial lies from its steady level, as logs.

        Above or below it: where some treatments warm up and others slow down, neither is less far.
        """
        weight = np.exp(self.prior.weights)
        size = math.hypot(self.prior.missing, self.prior.missing_sd)
        share = np.where(warmup_curves().free[:, None] == 1, (1.0, 0.0), _TWO)
        curves = np.einsum("mbi,mi->mb", warmup_curves().columns[:, :, 1:], size * share)
        return np.asarray(weight @ np.abs(curves))


def learn(series: Sequence[Array]) -> Learned:
    """Return noise and warm-ups that make the trials most likely; `series` as `model.fit` takes it.

    Expectation and maximisation in turns (Dempster, Laird and Rubin, 1977) for the curves' weights
    and what is missing at first, each drawn towards the first guess; the noise by the evidence.
    """
    groups, learned = list(_equal(series)), Learned()
    rhos: Sequence[float] = _RHOS
    for _ in range(_TURNS if groups else 0):
        noise, seen = _noise(groups, learned.prior, rhos)
        learned = Learned(noise, _prior(seen, noise, learned.prior))
        rhos = (noise.rho,)
    return learned


def learn_noise(series: Sequence[Array]) -> Learned:
    """Return the noise of very few trials; the warm-up prior stays the default."""
    groups = list(_equal(series))
    return Learned(_noise(groups, Prior(), _SOME_RHOS)[0]) if groups else Learned()


def _equal(series: Sequence[Array]) -> Iterator[Array]:
    """Yield trials of equal length together."""
    for bins in sorted({len(one) for one in series if len(one) >= _FEWEST}):
        yield np.array([one for one in series if len(one) == bins])


def _prior(seen: Sequence[TrialStatistics], noise: NoiseModel, prior: Prior) -> Prior:
    trials = sum(len(one.squares) for one in seen)
    first = np.exp(warmup_curves().log_weight)
    for _ in range(_ROUNDS):
        fits = [posterior(one, noise, prior) for one in seen]
        weight = sum((f.weight.sum(axis=0) for f in fits), np.zeros(len(first)))
        weight = (weight + _PSEUDO * first) / (trials + _PSEUDO)
        prior = Prior(*_missing(fits), log_weight=np.log(weight / weight.sum()))
    return prior


def _missing(fits: Sequence[Fit]) -> tuple[float, float]:
    """Return mean and standard deviation of the log of what is missing at first."""
    one = warmup_curves().free == 1
    guess = Prior()
    total, sums, squares = _PSEUDO_MISSING, _PSEUDO_MISSING * guess.missing, 0.0
    for f in fits:
        weighted = np.where(one, f.weight, 0.0)
        factors = f.factors[:, :, 1]
        total += float(weighted.sum())
        weighted *= factors
        sums += float(weighted.sum())
        squares += float((weighted * factors).sum())
    mean = sums / total
    squares += _PSEUDO_MISSING * (guess.missing**2 + guess.missing_sd**2)
    return mean, max(_LEAST_SD, float(np.sqrt(max(squares / total - mean**2, 0.0))))


def _noise(
    groups: Sequence[Array], prior: Prior, rhos: Sequence[float]
) -> tuple[NoiseModel, list[TrialStatistics]]:
    """Return the likeliest of some autocorrelations, with the variance that goes with it."""
    best, found = -np.inf, (NoiseModel(), list[TrialStatistics]())
    for rho in rhos:
        noise = _with_variance(groups, NoiseModel(rho), prior)
        seen = [statistics_of(group, noise) for group in groups]
        evidence = sum(float(posterior(s, noise, prior).log_evidence.sum()) for s in seen)
        if evidence > best:
            best, found = evidence, (noise, seen)
    return found


def _with_variance(groups: Sequence[Array], noise: NoiseModel, prior: Prior) -> NoiseModel:
    """Return the noise with the variance of the residuals of the likeliest models."""
    for _ in range(_TURNS):
        squares, count = 0.0, 0.0
        for group in groups:
            found = fit(group, noise, prior)
            likely = found.weight.argmax(axis=1)
            factors = found.factors[np.arange(len(group)), likely]
            white = noise.whiten(group[:, : noise.columns.shape[1]])
            columns = noise.columns[likely, : white.shape[1]]
            rest = white - np.einsum("rbi,ri->rb", columns, factors)
            squares += float((rest * rest).sum())
            count += float(rest.size - len(group) - warmup_curves().free[likely].sum())
        squares += _PSEUDO_BINS * NoiseModel().variance
        noise = NoiseModel(noise.rho, squares / (max(count, 0.0) + _PSEUDO_BINS))
    return noise


_SHARE = 1 / 3  # of a trial (ADR 0005)
_FEWEST_TAIL_BINS = 2


def begin(bins: int) -> int:
    """Return the first bin of the end of a trial."""
    return bins - min(bins, max(_FEWEST_TAIL_BINS, round(_SHARE * bins)))


def level(series: Array) -> Array:
    """Return the mean of the end of each of `series` (trials, bins)."""
    return np.asarray(series[:, begin(series.shape[1]) :].mean(axis=1))


def variance(found: Fit, noise: NoiseModel) -> Array:
    """Return the variance of each trial's level about its steady one.

    It is that of the mean of a first-order autoregression (Priestley, 1981, 5.3.5) and the expected
    square of what is left of the warm-up.
    """
    first = begin(found.bins)
    apart = np.arange(1, found.bins - first)
    count = found.bins - first
    of_mean = 1 + 2 * ((1 - apart / count) * noise.rho**apart).sum()
    of_mean *= noise.variance / (1 - noise.rho**2) / count
    columns = warmup_curves().columns[:, first : found.bins, 1:].mean(axis=1)
    left = np.einsum("mi,rmi->rm", columns, found.factors[:, :, 1:])
    return np.asarray(of_mean + (found.weight * left**2).sum(axis=1))
