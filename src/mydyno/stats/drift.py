"""The host over time: its drift, by generalised least squares, and the changes of its state.

Spent burst credits or other load change all treatments alike: trials of one state of the host are
not compared with trials of another.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import log, sqrt
from statistics import median

import numpy as np
from numpy.typing import NDArray

from mydyno.model import Finding, Outcome, TrialStatus
from mydyno.stats.effects import Effect, by_key, change
from mydyno.stats.estimates import BIN_S

Array = NDArray[np.float64]

TAU_S = 7200.0  # time constant of the host's drift; its size is estimated
_NOISES = (0.002, 0.004, 0.008, 0.015, 0.02, 0.025, 0.03, 0.04, 0.06, 0.1, 0.16, 0.25, 0.5)
_DRIFTS = (0.0, 0.005, 0.015, 0.03, 0.05, 0.08, 0.16)
_APART_S = 1e-3  # least time between two trials, so that the covariance can be inverted
_MANY = 60  # degrees of freedom from which on noise and drift can be separated
_MOST_SES = 1e4
SCALES = ((1.0, 0.88), (2.0, 0.05), (4.0, 0.04), (8.0, 0.03))
# ^ a treatment's noise beside that of the others, and how probable that is before its trials
HOT_SCALES = ((1.0, 0.97), (2.0, 0.015), (4.0, 0.01), (8.0, 0.005))  # where no server starts
_LIKELY = 1e-6  # probability of a model that is not left out
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
    """Coefficients, their covariance, and the estimated standard deviations of noise and drift.

    `models` holds the probability of each model that was averaged, and what it estimates; it is
    empty where there are trials enough to choose one.
    """

    level: Array
    covariance: Array
    noise_sd: float
    drift_sd: float
    df: int
    models: Sequence[tuple[float, "Levels"]] = ()

    def contrast(self, treatment: int, baseline: int) -> "Contrast":
        """Return a treatment's log ratio to the baseline."""
        models = [(p, *one.difference(treatment, baseline)) for p, one in self.models]
        alone = (1.0, *self.difference(treatment, baseline))
        return Contrast(*self.difference(treatment, baseline), np.array(models or [alone]))

    def difference(self, treatment: int, baseline: int) -> tuple[float, float]:
        """Return the difference of two coefficients and its standard error."""
        c = self.covariance
        variance = c[treatment, treatment] + c[baseline, baseline] - 2 * c[treatment, baseline]
        return float(self.level[treatment] - self.level[baseline]), float(np.sqrt(variance))


@dataclass(frozen=True, slots=True)
class Contrast:
    """A log ratio and its error; `models` (n, 3): probability, log ratio and error of each."""

    log_ratio: float
    se: float
    models: Array

    def critical(self, error: float) -> float:
        """Return the half width of an interval, in standard errors, that misses so often."""
        from scipy.optimize import brentq  # noqa: PLC0415 - much time; the states need none of it
        from scipy.special import ndtr  # noqa: PLC0415

        probability, log_ratios, errors = self.models.T
        apart = log_ratios - self.log_ratio

        def missed(critical: float) -> float:
            half = critical * self.se
            outside = ndtr((apart - half) / errors) + ndtr((-half - apart) / errors)
            return float(probability @ outside) - error

        return float(brentq(missed, 0.0, _MOST_SES, xtol=1e-4))

    def with_own_noise(
        self, left: Array, noise: float, prior_of: Sequence[tuple[float, float]] = SCALES
    ) -> "Contrast":
        """Return the log ratio of a treatment that may be less steady than the others.

        `left` are the residuals of its trials, `noise` is the standard deviation of all trials.
        How probable each larger noise is follows from `prior_of` (noise and probability of each)
        and from its own trials.
        """
        scales, prior = np.array(prior_of).T
        squares, count = float((left - left.mean()) @ (left - left.mean())), len(left)
        likely = -(count - 1) * np.log(scales) - squares / (2 * (scales * noise) ** 2)
        posterior = prior * np.exp(likely - likely.max())
        posterior /= posterior.sum()
        more = (scales**2 - 1) * noise**2 / count
        probability, log_ratios, errors = self.models.T
        models = np.stack([
            np.outer(posterior, probability).ravel(),
            np.tile(log_ratios, len(scales)),
            np.sqrt(errors**2 + more[:, None]).ravel(),
        ])  # fmt: skip
        se = sqrt(self.se**2 + float(posterior @ more))
        return replace(self, se=se, models=models.T)


def beside(left: Array, of: Mapping[str, Sequence[int]], blocks: Sequence[int]) -> Array:
    """Return each trial's residual less the mean of those of the others in its block.

    What the host does to all of a block is in both.  `of` holds the trials of each treatment.
    """
    found, numbers = left.copy(), np.array(blocks)
    for which in of.values():
        own = np.isin(np.arange(len(left)), which)
        for block in set(numbers[own].tolist()):
            others = left[(numbers == block) & ~own]
            found[(numbers == block) & own] -= others.mean() if len(others) else 0.0
    return found


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
    models = [(float(w), one) for w, one in zip(weight, every, strict=True) if w > _LIKELY]
    return Levels(level, spread, noise, drift, every[0].df, models)


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


def variances(
    trials: Trials, found: Levels, pair: tuple[int, int], memory_s: float
) -> tuple[Array, float]:
    """Return what each trial's noise, and what the drift, adds to the variance of a log ratio.

    The estimate is a weighted sum of the trials' levels; `pair` are the coefficients of a treatment
    and of the baseline.
    """
    variance = found.noise_sd**2 * trials.weight
    solved, _ = _whitened(trials.design, variance, _drifting(trials.at_s, found.drift_sd, memory_s))
    inverse = np.linalg.inv(trials.design.T @ solved)
    difference = inverse[:, pair[0]] - inverse[:, pair[1]]
    of_noise = (solved @ difference) ** 2 * variance
    total = float(difference[pair[0]] - difference[pair[1]])
    return np.asarray(of_noise), max(total - float(of_noise.sum()), 0.0)


def _whitened(both: Array, variance: Array, drift: Array | None) -> tuple[Array, float]:
    """Return the inverse covariance times `both`, and the log determinant of the covariance.

    The drift's precision is tridiagonal, so the cost is linear in the number of trials
    (Rue and Held, 2005, 1.2).
    """
    from scipy.linalg import solveh_banded  # noqa: PLC0415

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
    from scipy.linalg import cholesky_banded  # noqa: PLC0415

    return 2 * float(np.log(cholesky_banded(banded)[1]).sum())


def one_hot(treatments: NDArray[np.int64]) -> Array:
    """Return the design whose coefficients are the levels of treatments numbered from 0."""
    return np.equal.outer(treatments, np.arange(treatments.max() + 1)).astype(np.float64)


_SIGMAS = 3.0
_NOTABLE = 0.02  # least share of the difference that still changes within ten seconds
_FEWEST = 20  # segments


def carries(
    outcomes: Sequence[Outcome], response: str, effects: Mapping[str, Effect], segment_s: float
) -> bool:
    """Return whether the previous treatment carries over into the measured part of segments.

    In a settled segment the last ten seconds equal the ten before them.  With carry-over they
    differ by a share of the difference between the two treatments; that share is estimated over
    all segments (least squares through the origin).  Segments of one bin do not show it.
    """
    pairs = []
    for before, now in pairwise(outcomes):
        rise = _rise(now, response, round(segment_s / BIN_S))
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


def _rise(outcome: Outcome, response: str, bins: int) -> float | None:
    """Return the log ratio of a segment's last two bins; None for a trial that is no segment."""
    series = next((s.values for s in outcome.series if s.name == response), ())
    comparable = len(series) == bins >= _SIDE and min(series) > 0
    if outcome.status is not TrialStatus.OK or not comparable:
        return None
    return log(series[-1] / series[-2])


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """One finished trial: the binned log response and the campaign's time at its middle."""

    treatment: str
    at_s: float
    series: Array
    block: int = 0
    id: int = 0


_SHIFT = log(1.2)  # between two states; drift and neighbours hardly reach it
FALL_SHARE = 0.75  # of the treatments seen in both states change with it, ...
_HALF = 0.5  # ... by at least half of it
_FEWEST_OF_STATE = 2  # treatments that are in both states, or trials of one in either
_FALL = log(1.25)  # within a trial
_SIDE = 2  # bins to either side of a fall
_SUDDEN = 0.6  # share of a fall that happens at once: a slowdown takes longer
_NOISE_SDS = 4.0  # standard deviations of a mean of `_SIDE` bins
_END = 3  # a trial ends with a third of its bins, at least so many


def of_another_state(
    trials: Sequence[LoadSeries], bursts: Collection[str] = ()
) -> dict[int, Finding]:
    """Return, by trial id, why a trial does not belong to the host's most frequent state.

    The trials of treatments that begin with burst credits, `bursts`, fall by themselves.
    """
    falls = _falls(trials, bursts)
    stretches = [list(_eras(some)) for some in _between(trials, falls)]
    eras = [era for stretch in stretches for era in stretch]
    main = max(reversed(eras), key=len, default=[])
    invalid = {
        t.id: Finding("other-state", {"change": change(_shift(era, main))})
        for era in eras
        for t in era
        if era is not main
    }
    return invalid | falls | _borders(stretches, main)


def _borders(
    stretches: Sequence[Sequence[Sequence[LoadSeries]]], main: Sequence[LoadSeries]
) -> dict[int, Finding]:
    """Return the first and last trials of the main state that are next to another state.

    A trial in whose last minutes the state changed ends like those after it.
    """
    beside = [two for eras in stretches for two in pairwise(eras)]
    first = {main[0].id for _, after in beside if after is main}
    last = {main[-1].id for before, _ in beside if before is main}
    return dict.fromkeys(first | last, Finding("state-change"))


def _falls(trials: Sequence[LoadSeries], bursts: Collection[str]) -> dict[int, Finding]:
    """Return the trials in which performance fell and stayed low, as in the trials after them."""
    found: dict[int, Finding] = {}
    falls = [fall(trial.series) for trial in trials]
    for i, (trial, at) in enumerate(zip(trials, falls, strict=True)):
        own = trial.treatment in bursts
        if at and not own and _went_on(trials, falls, i, at[1]):
            figures = {"fall": -change(-at[1]), "at_s": at[0] * BIN_S}
            found[trial.id] = Finding("lasting-fall", figures)
    return found


def _went_on(
    trials: Sequence[LoadSeries], falls: Sequence[tuple[int, float] | None], at: int, depth: float
) -> bool:
    """Return whether other treatments have fallen with a trial.

    Where none is on both sides of it, as of a campaign's first and last trial, the host fell
    unless most trials of the same treatment (or all others, if it has none) fall by themselves.
    """
    mine = trials[at].treatment
    before = _by_treatment(t for t in trials[:at] if t.treatment != mine)
    after = _by_treatment(t for t in trials[at + 1 :] if t.treatment in before)
    shifts = [np.mean(before[name]) - np.mean(later) for name, later in after.items()]
    if shifts:
        return float(np.median(shifts)) >= _HALF * depth
    others = [i for i in range(len(trials)) if i != at]
    alike = [i for i in others if trials[i].treatment == mine] or others
    fell = sum(1 for i in alike if (own := falls[i]) and own[1] >= _HALF * depth)
    return not alike or fell < FALL_SHARE * len(alike)


def fall(series: Array) -> tuple[int, float] | None:
    """Return the bin at which a trial fell to where it stayed, and how far as a log."""
    if len(series) < 2 * _SIDE or max(series.tolist()) - _end(series) < _FALL:
        return None
    means = np.convolve(series, np.full(_SIDE, 1 / _SIDE), "valid")
    steps = means[:-_SIDE] - means[_SIDE:]
    at = int(steps.argmax()) + _SIDE
    before, after = means[at - _SIDE], series[at:]
    depth = float(before - after.mean())
    noise = float(np.median(np.abs(np.diff(series)))) * 1.05  # sd of differences over sqrt(2)
    stays = float(means[at:].max()) < before - depth / 2
    sudden = steps[at - _SIDE] >= _SUDDEN * depth
    return (at, depth) if depth >= max(_FALL, _NOISE_SDS * noise) and stays and sudden else None


def _between(trials: Sequence[LoadSeries], falls: Collection[int]) -> Iterator[list[LoadSeries]]:
    """Yield the stretches of trials that lie between those of `falls`."""
    some: list[LoadSeries] = []
    for trial in trials:
        if trial.id in falls:
            yield some
            some = []
        else:
            some.append(trial)
    yield some


def _eras(trials: Sequence[LoadSeries]) -> Iterator[Sequence[LoadSeries]]:
    """Yield each stretch of trials in one state, by binary segmentation."""
    at = _change(trials)
    if at is None:
        yield trials
        return
    yield from _eras(trials[:at])
    yield from _eras(trials[at:])


def _change(trials: Sequence[LoadSeries]) -> int | None:
    """Return the first trial of another state: least squares for a shift that all share.

    The statistic is that of Page (1954), each trial beside the mean of its treatment.
    """
    if len(trials) < 2 * _FEWEST_OF_STATE:
        return None
    names = {name: i for i, name in enumerate(dict.fromkeys(t.treatment for t in trials))}
    hot = one_hot(np.array([names[t.treatment] for t in trials]))
    ends = np.array([_end(t.series) for t in trials])
    counts = hot.sum(axis=0)
    rest = ends - hot @ (hot.T @ ends / counts)
    before = hot.cumsum(axis=0)[:-1]
    spread = (before * (counts - before) / counts).sum(axis=1)
    sums = rest.cumsum()[:-1]
    gain = np.where(spread > 0, sums**2 / np.maximum(spread, 1e-9), 0.0)
    gain[: _FEWEST_OF_STATE - 1] = gain[len(gain) - _FEWEST_OF_STATE + 1 :] = 0.0
    at = int(gain.argmax())
    shift = -sums[at] / max(spread[at], 1e-9)
    both = (before[at] > 0) & (before[at] < counts)
    often = (before[at] >= _FEWEST_OF_STATE) & (counts - before[at] >= _FEWEST_OF_STATE)
    if abs(shift) < _SHIFT or (both.sum() < _FEWEST_OF_STATE and not often.any()):
        return None
    early, late = hot[: at + 1, both], hot[at + 1 :, both]
    moved = (late.T @ ends[at + 1 :]) / late.sum(axis=0) - (early.T @ ends[: at + 1]) / early.sum(
        axis=0
    )
    shared = (moved / shift >= _HALF).mean() >= FALL_SHARE
    return at + 1 if shared else None


def _end(series: Array) -> float:
    last = series[-max(_END, len(series) // 3) :].tolist()
    return float(median(last))  # faster than numpy for so few values


def _by_treatment(trials: Iterable[LoadSeries]) -> dict[str, list[float]]:
    return by_key((trial.treatment, _end(trial.series)) for trial in trials)


def _shift(era: Sequence[LoadSeries], main: Sequence[LoadSeries]) -> float:
    """Return how far an era lies above the other, as a log, by treatments that are in both."""
    here, there = _by_treatment(era), _by_treatment(main)
    both = [float(np.mean(here[n]) - np.mean(there[n])) for n in here.keys() & there.keys()]
    return float(np.mean(both)) if both else 0.0
