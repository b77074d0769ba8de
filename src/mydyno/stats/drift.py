"""Levels of treatments on a host that drifts: generalised least squares over a campaign."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, product
from math import log, sqrt

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky_banded, solveh_banded

from mydyno.model import Outcome, TrialStatus
from mydyno.stats.contrasts import Effect

Array = NDArray[np.float64]

TAU_S = 7200.0  # time constant of the host's drift; its size is estimated
_NOISES = (0.002, 0.004, 0.008, 0.015, 0.02, 0.025, 0.03, 0.04, 0.06, 0.1)
_DRIFTS = (0.0, 0.005, 0.015, 0.03, 0.05, 0.08)
_APART_S = 1e-3  # least time between two trials, so that the covariance can be inverted
_MANY = 60  # degrees of freedom from which on noise and drift can be separated
_BEGIN = (4, 2)  # grid indices where the search starts: a usual host


@dataclass(frozen=True, slots=True)
class Trials:
    """Finished trials in order of time: row of the design, middle in seconds, level, weight.

    `design` is (trials, coefficients); `weight` is a trial's variance relative to the others'.
    """

    design: Array
    at_s: Array
    level: Array
    weight: Array


@dataclass(frozen=True, slots=True)
class Levels:
    """Coefficients, their covariance, and the estimated standard deviations of noise and drift."""

    level: Array
    covariance: Array
    noise_sd: float
    drift_sd: float
    df: int

    def contrast(self, treatment: int, baseline: int) -> tuple[float, float]:
        """Return a treatment's log ratio to the baseline and its standard error."""
        c = self.covariance
        variance = c[treatment, treatment] + c[baseline, baseline] - 2 * c[treatment, baseline]
        return float(self.level[treatment] - self.level[baseline]), float(np.sqrt(variance))


def levels(trials: Trials, memory_s: float = TAU_S) -> Levels:
    """Return the coefficients of a design whose columns are independent.

    The model is level = design x coefficients + drift + noise; the drift is an Ornstein-Uhlenbeck
    process of time constant `memory_s`.  With many trials both variances maximise the restricted
    likelihood (Patterson and Thompson, 1971) by hill climbing on a grid; with few trials the result
    is averaged over the grid, weighted by that likelihood.
    """
    if len(trials.level) - trials.design.shape[1] < _MANY:
        return _averaged([_solved(trials, (n, d), memory_s) for n, d in product(_NOISES, _DRIFTS)])
    at, solved = _BEGIN, dict[tuple[int, int], tuple[float, Levels]]()
    while True:
        around = [
            (at[0] + i, at[1] + j)
            for i, j in product((0, -1, 1), repeat=2)
            if 0 <= at[0] + i < len(_NOISES) and 0 <= at[1] + j < len(_DRIFTS)
        ]
        for place in around:
            if place not in solved:
                sds = (_NOISES[place[0]], _DRIFTS[place[1]])
                solved[place] = _solved(trials, sds, memory_s)
        best = max(around, key=lambda place: solved[place][0])
        if best == at:
            return solved[at][1]
        at = best


def _averaged(found: Sequence[tuple[float, Levels]]) -> Levels:
    """Return the mean over models weighted by likelihood, with the variance between them."""
    scores = np.array([score for score, _ in found])
    weight = np.exp(scores - scores.max())
    weight /= weight.sum()
    every = [one for _, one in found]
    level = np.asarray(sum(w * one.level for w, one in zip(weight, every, strict=True)))
    spread = np.zeros_like(every[0].covariance)
    for w, one in zip(weight, every, strict=True):
        spread += w * (one.covariance + np.outer(one.level - level, one.level - level))
    noise, drift = (
        float(np.sqrt(weight @ np.array([getattr(one, name) ** 2 for one in every])))
        for name in ("noise_sd", "drift_sd")
    )
    return Levels(level, spread, noise, drift, every[0].df)


def _solved(trials: Trials, sds: tuple[float, float], memory_s: float) -> tuple[float, Levels]:
    noise_sd, drift_sd = sds
    both = np.column_stack([trials.design, trials.level])
    variance = noise_sd**2 * trials.weight
    solved, log_det = _whitened(both, variance, _drifting(trials.at_s, drift_sd, memory_s))
    information = both[:, :-1].T @ solved[:, :-1]
    covariance = np.asarray(np.linalg.inv(information), dtype=np.float64)
    level = covariance @ (both[:, :-1].T @ solved[:, -1])
    rest = float(trials.level @ solved[:, -1] - level @ information @ level)
    reml = -(log_det + np.linalg.slogdet(information)[1] + rest) / 2
    df = len(trials.level) - trials.design.shape[1]
    return float(reml), Levels(level, covariance, noise_sd, drift_sd, df)


def _whitened(both: Array, variance: Array, drift: Array | None) -> tuple[Array, float]:
    """Return the inverse covariance times `both`, and the log determinant of the covariance.

    The drift's precision is tridiagonal, so the cost is linear in the number of trials
    (Rue and Held, 2005, 1.2).
    """
    scaled = both / variance[:, None]
    log_det = float(np.log(variance).sum())
    if drift is None:
        return scaled, log_det
    sum_of_both = drift.copy()
    sum_of_both[1] += 1 / variance
    inner = solveh_banded(sum_of_both, scaled)
    log_det += _log_det(sum_of_both) - _log_det(drift)
    return scaled - inner / variance[:, None], log_det


def _drifting(at_s: Array, drift_sd: float, memory_s: float) -> Array | None:
    """Return the precision of the drift at these times, in the upper form of banded matrices."""
    if drift_sd == 0:
        return None
    apart_s = np.maximum(np.diff(at_s), _APART_S)
    keep = np.exp(-apart_s / memory_s)
    fresh = drift_sd**2 * -np.expm1(-2 * apart_s / memory_s)
    banded = np.zeros((2, len(at_s)))
    banded[0, 1:] = -keep / fresh
    banded[1, 0] = drift_sd**-2
    banded[1, 1:] += 1 / fresh
    banded[1, :-1] += keep**2 / fresh
    return banded


def _log_det(banded: Array) -> float:
    return 2 * float(np.log(cholesky_banded(banded)[1]).sum())


def one_hot(treatments: Sequence[int]) -> Array:
    """Return the design whose coefficients are the levels of treatments numbered from 0."""
    which = np.asarray(treatments)
    return np.asarray(np.equal.outer(which, np.arange(which.max() + 1)), dtype=np.float64)


def trials_of(
    design: Array, at_s: Sequence[float], level: Sequence[float] | Array,
    weight: Sequence[float] | Array | None = None,
) -> Trials:  # fmt: skip
    """Return trials from sequences; equal weights by default."""
    one = np.asarray(level, dtype=np.float64)
    return Trials(
        design,
        np.asarray(at_s, dtype=np.float64),
        one,
        np.ones_like(one) if weight is None else np.asarray(weight, dtype=np.float64),
    )


_SIGMAS = 3.0
_NOTABLE = 0.02  # least share of the difference that still changes within ten seconds
_FEWEST = 20  # segments


def carries(outcomes: Sequence[Outcome], response: str, effects: Mapping[str, Effect]) -> bool:
    """Return whether the previous treatment carries over into the measured part of segments.

    In a settled segment the last ten seconds equal the ten before them.  With carry-over they
    differ by a share of the difference between the two treatments; that share is estimated over
    all segments (least squares through the origin).
    """
    pairs = []
    for before, now in pairwise(outcomes):
        rise = _rise(now, response)
        if before.status is TrialStatus.OK and rise is not None:
            step = _level(effects, now.trial.treatment) - _level(effects, before.trial.treatment)
            pairs.append((step, rise))
    squares = sum(step * step for step, _ in pairs)
    if len(pairs) < _FEWEST or squares == 0:
        return False
    mean = sum(rise for _, rise in pairs) / len(pairs)
    share = sum(step * (rise - mean) for step, rise in pairs) / squares
    rest = sum((rise - mean - share * step) ** 2 for step, rise in pairs) / (len(pairs) - 2)
    return share > max(_SIGMAS * sqrt(rest / squares), _NOTABLE)


def _level(effects: Mapping[str, Effect], treatment: str) -> float:
    return effects[treatment].log_ratio if treatment in effects else 0.0


def _rise(outcome: Outcome, response: str) -> float | None:
    """Return the log ratio of a segment's last two bins; None for a trial that is no segment."""
    series = next((s.values for s in outcome.series if s.name == response), ())
    if outcome.status is not TrialStatus.OK or len(series) != 3 or min(series) <= 0:  # noqa: PLR2004
        return None
    return log(series[-1] / series[-2])
