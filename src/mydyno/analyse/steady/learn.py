"""Warm-ups and noise of a campaign, learned from its finished trials (empirical Bayes)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mydyno.analyse.steady.model import Fit, Prior, Texture, fit
from mydyno.analyse.steady.shapes import Array, shapes

_ROUNDS = 12
_PSEUDO = 5.0  # trials that the first weights are worth
_PSEUDO_MISSING = 2.0
_LEAST_SD = 0.04
_RHOS = (0.0, 0.2, 0.45, 0.65, 0.8)
_FEWEST = 3  # bins of a trial that say something


@dataclass(frozen=True)
class Learned:
    """What a campaign's trials have in common."""

    texture: Texture = field(default_factory=Texture)
    prior: Prior = field(default_factory=Prior)


def learn(series: Sequence[Array]) -> Learned:
    """Return noise and warm-ups that make the trials most likely; `series` as `model.fit` takes it.

    Expectation and maximisation in turns (Dempster, Laird and Rubin, 1977) for the shapes' weights
    and what is missing at first, each drawn towards the first guess; the noise by the evidence.
    """
    learned = Learned()
    groups = list(_equal(series))
    if not groups:
        return learned
    learned = replace(learned, texture=_texture(groups, learned.prior))
    learned = replace(learned, prior=_prior(groups, learned))
    learned = replace(learned, texture=_texture(groups, learned.prior))
    return replace(learned, prior=_prior(groups, learned))


def _equal(series: Sequence[Array]) -> Iterator[Array]:
    """Yield trials of equal length together."""
    for bins in sorted({len(one) for one in series if len(one) >= _FEWEST}):
        yield np.array([one for one in series if len(one) == bins])


def _prior(groups: Sequence[Array], learned: Learned) -> Prior:
    prior = learned.prior
    trials = sum(len(group) for group in groups)
    first = np.exp(shapes().log_weight)
    for _ in range(_ROUNDS):
        fits = [fit(group, learned.texture, prior) for group in groups]
        weight = sum((f.weight.sum(axis=0) for f in fits), np.zeros(len(first)))
        weight = (weight + _PSEUDO * first) / (trials + _PSEUDO)
        prior = Prior(*_missing(fits), log_weight=np.log(weight / weight.sum()))
    return prior


def _missing(fits: Sequence[Fit]) -> tuple[float, float]:
    """Return mean and standard deviation of the log of what is missing at first."""
    one = shapes().free == 1
    guess = Prior()
    weight = np.concatenate([f.weight[:, one].ravel() for f in fits])
    factor = np.concatenate([f.factors[:, one, 1].ravel() for f in fits])
    total = weight.sum() + _PSEUDO_MISSING
    mean = (weight @ factor + _PSEUDO_MISSING * guess.missing) / total
    squares = weight @ (factor - mean) ** 2 + _PSEUDO_MISSING * guess.missing_sd**2
    return float(mean), max(_LEAST_SD, float(np.sqrt(squares / total)))


def _texture(groups: Sequence[Array], prior: Prior) -> Texture:
    """Return the likeliest of some autocorrelations, each with the variance that goes with it."""
    found = [_variance(groups, rho, prior) for rho in _RHOS]
    return max(found, key=lambda t: sum(fit(g, t, prior).log_evidence.sum() for g in groups))


def _variance(groups: Sequence[Array], rho: float, prior: Prior) -> Texture:
    texture = Texture(rho)
    for _ in range(3):
        squares, count = 0.0, 0.0
        for group in groups:
            best = fit(group, texture, prior)
            white = texture.whiten(group)
            columns = texture.columns[:, : group.shape[1]]
            for trial, weight, factors in zip(white, best.weight, best.factors, strict=True):
                likely = int(weight.argmax())
                rest = trial - columns[likely] @ factors[likely]
                squares += float(rest @ rest)
                count += len(trial) - 1 - shapes().free[likely]
        texture = Texture(rho, max(squares / max(count, 1.0), 1e-8))
    return texture
