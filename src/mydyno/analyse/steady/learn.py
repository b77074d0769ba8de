"""Warm-ups and noise of a campaign, learned from its finished trials (empirical Bayes)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mydyno.analyse.steady.curves import Array, shapes
from mydyno.analyse.steady.model import Fit, NoiseModel, Prior, Seen, fit, see, weigh

_ROUNDS = 12
_PSEUDO = 5.0  # trials that the first weights are worth
_PSEUDO_MISSING = 2.0  # and the first guess of what is missing
_PSEUDO_BINS = 0.5  # that the first variance is worth
_LEAST_SD = 0.04
_RHOS = (0.0, 0.2, 0.45, 0.65, 0.8)
_SOME_RHOS = (0.2, 0.45)
_TURNS = 2
_FEWEST = 3  # bins of a trial that say something


@dataclass(frozen=True)
class Learned:
    """What a campaign's trials have in common."""

    texture: NoiseModel = field(default_factory=NoiseModel)
    prior: Prior = field(default_factory=Prior)

    def variance_within(self, found: Fit, bins: int) -> float:
        """Return the variance of the level that would be left after `bins`, the shape being known.

        It is the mean over the trials; likely shapes count for more than they are likely now, as
        they will.
        """
        variances = self.prior.ready(self.texture, bins).within
        likely = found.weight**2
        likely /= likely.sum(axis=1, keepdims=True)
        return float(likely.mean(axis=0) @ variances)

    def usually_left(self) -> Array:
        """Return how far each bin of a usual trial lies from its steady level, as logs."""
        weight = np.exp(self.prior.weights)
        curves = np.einsum("mbi,mi->mb", shapes().columns[:, :, 1:], self.prior.means[:, 1:])
        return np.asarray(weight @ np.abs(curves))


def learn(series: Sequence[Array]) -> Learned:
    """Return noise and warm-ups that make the trials most likely; `series` as `model.fit` takes it.

    Expectation and maximisation in turns (Dempster, Laird and Rubin, 1977) for the shapes' weights
    and what is missing at first, each drawn towards the first guess; the noise by the evidence.
    """
    groups, learned = list(_equal(series)), Learned()
    rhos: Sequence[float] = _RHOS
    for _ in range(_TURNS if groups else 0):
        texture, seen = _texture(groups, learned.prior, rhos)
        learned = Learned(texture, _prior(seen, texture, learned.prior))
        rhos = (texture.rho,)
    return learned


def glance(series: Sequence[Array]) -> Learned:
    """Return the noise of very few trials, whose warm-ups tell nothing of others yet."""
    groups = list(_equal(series))
    return Learned(_texture(groups, Prior(), _SOME_RHOS)[0]) if groups else Learned()


def _equal(series: Sequence[Array]) -> Iterator[Array]:
    """Yield trials of equal length together."""
    for bins in sorted({len(one) for one in series if len(one) >= _FEWEST}):
        yield np.array([one for one in series if len(one) == bins])


def _prior(seen: Sequence[Seen], texture: NoiseModel, prior: Prior) -> Prior:
    trials = sum(len(one.squares) for one in seen)
    first = np.exp(shapes().log_weight)
    for _ in range(_ROUNDS):
        fits = [weigh(one, texture, prior) for one in seen]
        weight = sum((f.weight.sum(axis=0) for f in fits), np.zeros(len(first)))
        weight = (weight + _PSEUDO * first) / (trials + _PSEUDO)
        prior = Prior(*_missing(fits), log_weight=np.log(weight / weight.sum()))
    return prior


def _missing(fits: Sequence[Fit]) -> tuple[float, float]:
    """Return mean and standard deviation of the log of what is missing at first."""
    one = shapes().free == 1
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


def _texture(
    groups: Sequence[Array], prior: Prior, rhos: Sequence[float]
) -> tuple[NoiseModel, list[Seen]]:
    """Return the likeliest of some autocorrelations, with the variance that goes with it."""
    best, told = -np.inf, (NoiseModel(), list[Seen]())
    for rho in rhos:
        texture = _with_variance(groups, NoiseModel(rho), prior)
        seen = [see(group, texture) for group in groups]
        evidence = sum(float(weigh(s, texture, prior).log_evidence.sum()) for s in seen)
        if evidence > best:
            best, told = evidence, (texture, seen)
    return told


def _with_variance(groups: Sequence[Array], texture: NoiseModel, prior: Prior) -> NoiseModel:
    """Return the texture with the variance of what its likeliest models leave over."""
    for _ in range(_TURNS):
        squares, count = 0.0, 0.0
        for group in groups:
            found = fit(group, texture, prior)
            likely = found.weight.argmax(axis=1)
            factors = found.factors[np.arange(len(group)), likely]
            white = texture.whiten(group[:, : texture.columns.shape[1]])
            columns = texture.columns[likely, : white.shape[1]]
            rest = white - np.einsum("rbi,ri->rb", columns, factors)
            squares += float((rest * rest).sum())
            count += float(rest.size - len(group) - shapes().free[likely].sum())
        squares += _PSEUDO_BINS * NoiseModel().variance
        texture = NoiseModel(texture.rho, squares / (max(count, 0.0) + _PSEUDO_BINS))
    return texture
