"""Warm-ups and noise of a campaign, learned from its finished trials (empirical Bayes)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mydyno.analyse.steady.model import (
    Fit,
    NoiseModel,
    Prior,
    TrialStatistics,
    fit,
    posterior,
    statistics_of,
)
from mydyno.analyse.steady.warmups import Array, warmup_curves

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
        """Return how far each bin of a usual trial lies from its steady level, as logs."""
        weight = np.exp(self.prior.weights)
        curves = np.einsum("mbi,mi->mb", warmup_curves().columns[:, :, 1:], self.prior.means[:, 1:])
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
