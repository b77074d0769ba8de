"""Estimates for sequential designs, where trials and campaign end by what was seen.

Intervals hold over all planned looks.  Each trial gives a steady level, though it may still have
been warming up; the levels of a treatment are compared with the baseline's on a host that drifts.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isfinite, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from mydyno.model import Outcome, Series, TrialStatus
from mydyno.stats import drift, steady
from mydyno.stats.drift import (
    TAU_S,
    Contrast,
    Levels,
    LoadSeries,
    Trials,
    carries,
    levels,
    one_hot,
    variances,
)
from mydyno.stats.effects import Effect, by_key
from mydyno.stats.estimates import BIN_S, Estimates, log_of
from mydyno.stats.looks import each_of, last_bound, nominal, thinned
from mydyno.stats.rule import CONFIDENCE, Estimator, Goal, Method, Rule, is_lower
from mydyno.stats.steady import Learned, NoiseModel, fit, learn

_FEWEST = 2  # to choose from


def shrink_best(
    effects: Mapping[str, Effect], apart: Callable[[str, str], float]
) -> dict[str, Effect]:
    """Return the effects, the best one's estimate corrected for selection bias.

    `apart` returns the standard error of the difference of two treatments.  The lead over the
    second best is shrunk by the positive-part rule of James and Stein (Efron and Morris, 1973),
    and half of the shrinkage is subtracted from the best.  Intervals do not change: they hold for
    each treatment, whichever is chosen.
    """
    if len(effects) < _FEWEST:
        return dict(effects)
    best, second = sorted(effects, key=lambda name: -effects[name].log_ratio)[:2]
    lead = effects[best].log_ratio - effects[second].log_ratio
    shrinkage = min(lead, apart(best, second) ** 2 / lead) if lead > 0 else 0.0
    return {**effects, best: replace(effects[best], bias=shrinkage / 2)}


Array = NDArray[np.float64]
LONG_S = 700.0  # a trial that still moves after this time has no steady state
_BLOCK = 5  # bins: jumps last longer
_CERTAIN, _PERHAPS = 0.0003, 0.05
ENOUGH = 5  # trials: with more, a possible jump is ruled out
_REFERENCE_DF = 60
_SEVERAL = 4  # trials whose own differences give the standard error
_SIGMAS = 3.0
_NOTABLE = 0.04  # between thirds of a trial, as logs: more than a slow warm-up still does


def jumping(
    series: Mapping[str, Sequence[Array]], noise: NoiseModel
) -> tuple[list[str], list[str]]:
    """Return the treatments whose trials differ over time more than noise explains.

    The first list holds the significant ones, the second those with too few trials to rule it out.
    After subtraction of each trial's mean and of the course that a treatment's trials share, means
    of fifty seconds have the variance of noise (F test against the median treatment or the learned
    noise, whichever is larger).
    """
    from scipy.special import fdtrc  # noqa: PLC0415 - much time; series of loads need none of it

    found = {name: _roughness(of) for name, of in series.items()}
    known = {name: one for name, one in found.items() if one is not None}
    if not known:
        return [], []
    usual = max(_variance(noise), float(np.median([value for value, _ in known.values()])))
    chance = {n: fdtrc(df, _REFERENCE_DF, value / usual) for n, (value, df) in known.items()}
    certain = [name for name, p in chance.items() if p < _CERTAIN]
    possible = [
        n for n, p in chance.items() if _CERTAIN <= p < _PERHAPS and len(series[n]) < ENOUGH
    ]
    return certain, possible


def moving(series: Sequence[Array], noise: NoiseModel) -> bool:
    """Return whether the last third of a treatment's trials differs significantly from the second.

    The standard error is that of the learned noise or of the trials' own differences, whichever is
    smaller: a series that never settles looks like noise of long memory.
    """
    if not series:
        return False
    third = min(len(one) for one in series) // 3
    if third < _FEWEST:
        return False
    changes = [one[2 * third : 3 * third].mean() - one[third : 2 * third].mean() for one in series]
    error = np.sqrt(2 * noise.variance / (1 - noise.rho) ** 2 / third / len(series))
    if len(series) >= _SEVERAL:
        error = min(error, float(np.std(changes, ddof=1)) / np.sqrt(len(series)))
    return bool(abs(float(np.mean(changes))) > max(_SIGMAS * error, _NOTABLE))


def _roughness(series: Sequence[Array]) -> tuple[float, int] | None:
    """Return the variance of block means about course and mean, and its degrees of freedom."""
    blocks = min((len(one) for one in series), default=0) // _BLOCK
    if len(series) < _FEWEST or blocks < _FEWEST:
        return None
    means = np.array(
        [one[: blocks * _BLOCK].reshape(blocks, _BLOCK).mean(axis=1) for one in series]
    )
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    df = (len(series) - 1) * (blocks - 1)
    return float((rest**2).sum() / df), df


def _variance(noise: NoiseModel) -> float:
    """Return the variance of a block's mean under this noise."""
    apart = np.abs(np.subtract.outer(np.arange(_BLOCK), np.arange(_BLOCK)))
    covariance = noise.variance / (1 - noise.rho**2) * noise.rho**apart
    return float(covariance.mean())


_FIRST = 8  # trials that noise and warm-ups are learned from; then twice as many, ...
_MOST = 64  # ... up to this number
_ENOUGH = 2
SERVER_START_SD = 0.015  # standard deviation between server starts, as logs
_WILD = 9.0  # times the usual variance of a treatment's trials
_MANY = 5  # treatments needed for a usual variance
_MEDIAN = 0.6  # of squares of few trials, about, where their mean is 1
_HOT_TAU_S = 120.0  # time constant of disturbances of segments: neighbours, checkpoints
_LOOKED = "~"  # suffix of the name of exploratory trials
_LONGEST_S = 1e8  # three years
_MANY_TREATMENTS = 4  # the baseline included: so few are measured to the end
_LEAST = 1e-3  # of the mean: the value of a bin without work, as log 0 does not exist


@dataclass(frozen=True, slots=True)
class Steady:
    """Each trial's log level, that of its end, and its variance about the steady one."""

    level: Array
    variance: Array


def measure(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> Estimates:
    """Return effects on the steady level of the response, and on the metrics of the guards."""
    trials, steady = steady_of(outcomes, rule, workload)
    if not trials:
        return Estimates()
    sign = rule.gain(1.0, workload)
    proven = {t.treatment for t in trials if _role(t, rule) == t.treatment}
    # of what was proven the trials by which it was chosen say too much
    counted = [t.treatment not in proven or _role(t, rule) == t.treatment for t in trials]
    named = by_key((t.treatment, i) for i, t in enumerate(trials) if counted[i])
    values = {name: [sign * float(v) for v in steady.level[which]] for name, which in named.items()}
    warming = rule.method.estimator is Estimator.STEADY
    unsteady, wavering = _unsteady(trials) if warming else ([], [])
    found = _compared(trials, steady, rule)
    if found is None:
        return Estimates(values=values)
    shares = _shares(outcomes, rule)
    effects = found.effects(rule.baseline, shares)
    beside = drift.beside(found.left, found.of, found.blocks)
    if rule.method.goal is Goal.BEST:
        effects = shrink_best(effects, lambda a, b: found.contrast(a, b).se)
    effects = effects if sign > 0 else {name: e.inverse() for name, e in effects.items()}
    response, segment_s = rule.responses[workload], rule.method.segment_s
    mine = [o for o in outcomes if o.trial.workload == workload]
    return Estimates(
        effects=effects,
        guards={
            name: _guard(outcomes, rule, workload, name, shares)
            for name in rule.guards_of(workload)
        },
        values=values,
        spreads={name: [float(v) for v in beside[which]] for name, which in found.of.items()},
        unsteady=unsteady,
        wavering=wavering,
        carries=segment_s is not None and carries(mine, response, effects, segment_s),
    )


def error_shares(outcomes: Sequence[Outcome], rule: Rule, workload: str) -> dict[str, float]:
    """Return what share of the variance of the log ratios is due to what, empty where unknown.

    ``seconds`` is noise within trials, ``starts`` between server starts, ``drift`` the host's.
    """
    trials, steady = steady_of(outcomes, rule, workload)
    found = _compared(trials, steady, rule) if trials else None
    own = steady.variance if rule.method.estimator is Estimator.STEADY else None
    if found is None or (own is None and rule.method.segment_s is None):  # a window for each start
        return {}
    return found.shares(rule.baseline, own)


def steady_of(
    outcomes: Sequence[Outcome], rule: Rule, workload: str
) -> tuple[list[LoadSeries], Steady]:
    """Return the good trials of a workload, and the steady level of each."""
    response = rule.responses[workload]
    if rule.method.estimator is not Estimator.STEADY:
        trials, level = _windows(outcomes, workload, response, rule.method)
        return trials, Steady(rule.gain(1.0, workload) * level, np.zeros(len(level)))
    trials = load_series(outcomes, workload, response, rule.lower)
    if not trials:
        return [], Steady(np.zeros(0), np.zeros(0))
    return trials, steady_levels(trials, learn_from([t.series for t in trials]))


def _role(trial: LoadSeries, rule: Rule) -> str:
    """Return the name a trial is counted under; that of an exploratory trial has a suffix.

    The baseline was not chosen by its results, so all of its trials count.
    """
    exploratory = trial.block < rule.method.proving_from and trial.treatment != rule.baseline
    return trial.treatment + _LOOKED if exploratory else trial.treatment


def load_series(
    outcomes: Sequence[Outcome], workload: str, response: str, lower: Collection[str] = ()
) -> list[LoadSeries]:
    """Return the good trials of a workload, with their times in the campaign in s.

    `lower` names the metrics that the spec declares better if lower.
    """
    found = []
    for outcome, began_s in _timed(outcomes):
        if outcome.trial.workload != workload or outcome.status is not TrialStatus.OK:
            continue
        series = next((s for s in outcome.series if s.name == response), None)
        if series is not None and series.values:
            at_s = began_s + outcome.machine_time_s - series.t_s[-1] / 2
            trial = outcome.trial
            logs = gains(series, lower)
            found.append(LoadSeries(trial.treatment, at_s, logs, trial.block, trial.id))
    return found


def _windows(
    outcomes: Sequence[Outcome], workload: str, metric: str, method: Method
) -> tuple[list[LoadSeries], Array]:
    """Return the trials whose windows have a metric, without their series, and its logs."""
    trials, level = [], []
    for outcome, began_s in _timed(outcomes):
        value = log_of(outcome, metric) if outcome.trial.workload == workload else None
        if value is not None and _counts(outcome, method):
            at_s = began_s + outcome.machine_time_s / 2
            name, block = outcome.trial.treatment, outcome.trial.block
            trials.append(LoadSeries(name, at_s, np.zeros(0), block))
            level.append(value)
    return trials, np.array(level)


def _counts(outcome: Outcome, method: Method) -> bool:
    """Return whether a trial counts as a measurement, not only as the time to settle."""
    if method.segment_s is None or method.settling_counts:
        return True
    return outcome.window.end_s <= method.segment_s


def gains(series: Series, lower: Collection[str] = ()) -> Array:
    """Return the logarithms of a binned response, oriented so that more is better."""
    some = np.asarray(series.values, dtype=np.float64)
    with np.errstate(over="ignore"):
        mean = float(some.mean()) if len(some) else 0.0
    if not isfinite(mean):
        mean = float((some / len(some)).sum())  # the sum overflows
    logs = np.asarray(np.log(np.maximum(some, max(mean * _LEAST, 1e-12))))
    return -logs if is_lower(series.name, lower) else logs


def _timed(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, float]]:
    """Yield each outcome with the campaign's machine time at its beginning.

    A time out of range, as a load may report it, is clamped.
    """
    began_s = 0.0
    for outcome in outcomes:
        spent_s = min(max(outcome.machine_time_s, 0.0), _LONGEST_S)
        yield replace(outcome, machine_time_s=spent_s), began_s
        began_s += spent_s


@dataclass(frozen=True, slots=True)
class _Compared:
    """The levels of treatments; `of` holds the trials of each.

    `runs` are the trials as they were compared, `left` is a trial's distance from the level of its
    treatment; `restarts`: each trial has a server of its own.  `memory_s` is the time constant of
    what disturbs trials alike.
    """

    levels: Levels
    of: Mapping[str, Sequence[int]]
    runs: Trials
    left: Array
    blocks: Sequence[int]
    restarts: bool
    memory_s: float

    def contrast(self, treatment: str, baseline: str) -> Contrast:
        """Return a treatment's log ratio to the baseline."""
        number, which = list(self.of).index, self.of[treatment]
        found = self.levels.contrast(number(treatment), number(baseline))
        left = self.left[which] / np.sqrt(self.runs.weight[which])
        scales = drift.SCALES if self.restarts else drift.HOT_SCALES
        return found.with_own_noise(left, self.levels.noise_sd, scales)

    def shares(self, baseline: str, own: Array | None) -> dict[str, float]:
        """Return the shares of the variance, summed over the treatments.

        `own` is each trial's variance about its steady level; what its level varies by beyond that
        is due to the server's start.  Without it all is due to seconds.
        """
        number = list(self.of).index
        varying = self.levels.noise_sd**2 * self.runs.weight
        of_seconds = np.ones(len(varying)) if own is None else np.minimum(own / varying, 1.0)
        parts = dict.fromkeys(("starts", "seconds", "drift"), 0.0)
        for name in (n for n in self.of if n != baseline):
            pair = (number(name), number(baseline))
            noise, drifting = variances(self.runs, self.levels, pair, self.memory_s)
            parts["seconds"] += float(noise @ of_seconds)
            parts["starts"] += float(noise @ (1 - of_seconds))
            parts["drift"] += drifting
        total = sum(parts.values())
        return {name: part / total for name, part in parts.items()} if total > 0 else {}

    def effects(self, baseline: str, shares: Mapping[int, float]) -> dict[str, Effect]:
        """Return each treatment's effect against the baseline, where an interval can be given.

        `shares` are those of the error that may be spent by the end of each block, none where there
        is one look.  A treatment
        whose bound is above 0 no longer takes part in the bounds of the others (Holm, 1979).
        """
        names = [n for n in self.of if n != baseline and not n.endswith(_LOOKED)]
        effects = {n: self._effect(n, baseline, shares) for n in names if len(self.of[n]) > 1}
        ordered = sorted(effects, key=lambda n: -effects[n].log_ratio / effects[n].se)
        open_ = max(len(names), 1)
        for name in ordered:
            effects[name] = self._with_bound(effects[name], name, baseline, open_, shares)
            open_ -= effects[name].lower_bound > 0 and open_ > 1
        return effects

    def _effect(self, name: str, baseline: str, shares: Mapping[int, float]) -> Effect:
        contrast = self.contrast(name, baseline)
        critical = contrast.critical(self._error(name, 1 - CONFIDENCE, shares))
        return Effect(contrast.log_ratio, contrast.se, critical, len(self.of[name]))

    def _with_bound(
        self, effect: Effect, name: str, baseline: str, among: int, shares: Mapping[int, float]
    ) -> Effect:
        own, control = len(self.of[name]), len(self.of[baseline])
        one_sided = each_of(among, round(own / (own + control), 1), 1 - CONFIDENCE)
        alpha = min(2 * one_sided, 1 - CONFIDENCE)
        error = self._error(name, alpha, shares)
        simultaneous = self.contrast(name, baseline).critical(error)
        if not shares or len(self.of) <= _MANY_TREATMENTS:
            return replace(effect, simultaneous=simultaneous)
        looks = self._looks(name, shares)
        last, bound = last_bound(*looks, alpha)
        spread = effect.se * sqrt(1 - own / last)
        above = effect.log_ratio - bound * effect.se * sqrt(own / last)
        promise = NormalDist().cdf(above / spread) if spread > 0 else 1.0
        return replace(effect, simultaneous=simultaneous, promise=promise, share=looks[1][-1])

    def _error(self, name: str, alpha: float, shares: Mapping[int, float]) -> float:
        """Return the error of a treatment's interval at its last look."""
        return nominal(*self._looks(name, shares), alpha) if shares else alpha

    def _looks(
        self, name: str, shares: Mapping[int, float]
    ) -> tuple[Sequence[int], Sequence[float]]:
        """Return the number of trials at each of a treatment's looks, and the shares of the error.

        The first is at its second trial; where all may be spent, at a ladder's end, one is left.
        """
        blocks = sorted(self.blocks[i] for i in self.of[name])
        each = [(n, shares[blocks[n - 1]]) for n in thinned(len(blocks))]
        looks = [*(look for look in each[:-1] if look[1] < 1), each[-1]]
        return [n for n, _ in looks], [share for _, share in looks]


def _compared(trials: Sequence[LoadSeries], steady: Steady, rule: Rule) -> _Compared | None:
    """Return the treatments' levels, None without a baseline or without spare degrees of freedom.

    A trial's variance is that of server starts and its own, and larger for a treatment that varies
    far more than the others, so that it does not widen their intervals.
    """
    level = steady.level
    names = [_role(t, rule) for t in trials]
    of = by_key((name, i) for i, name in enumerate(names))
    if rule.baseline not in of or len(names) < len(of) + _ENOUGH:
        return None
    weight = 1 + steady.variance / SERVER_START_SD**2
    restarts = rule.method.segment_s is None
    memory_s = TAU_S if restarts else _HOT_TAU_S
    numbers = np.array([list(of).index(name) for name in names])
    runs = Trials(one_hot(numbers), np.array([t.at_s for t in trials]), level, weight)
    found = levels(runs, memory_s)
    wild = _weights((level - found.level[numbers]) / np.sqrt(weight), numbers)
    if (wild > 1).any():
        runs = replace(runs, weight=weight * wild)
        found = levels(runs, memory_s)
    left = level - found.level[numbers]
    return _Compared(found, of, runs, left, [t.block for t in trials], restarts, memory_s)


def _weights(left: Array, numbers: NDArray[np.int64]) -> Array:
    """Return each trial's relative variance: above 1 for a treatment with unusual spread."""
    counts = np.bincount(numbers)
    squares = np.bincount(numbers, left**2)
    several = counts > 1
    own = squares[several] / (counts[several] - 1)
    usual = float(np.median(own)) / _MEDIAN if len(own) >= _MANY else np.inf
    ratio = np.ones(len(counts))
    ratio[several] = own / max(usual, 1e-12)
    return np.where(ratio > _WILD, ratio, 1.0)[numbers]


def _guard(
    outcomes: Sequence[Outcome],
    rule: Rule,
    workload: str,
    metric: str,
    shares: Mapping[int, float],
) -> dict[str, Effect]:
    """Return the effects on a metric of the measured windows; not simultaneous."""
    trials, level = _windows(outcomes, workload, metric, rule.method)
    found = _compared(trials, Steady(level, np.zeros(len(level))), rule)
    return found.effects(rule.baseline, shares) if found else {}


def _shares(outcomes: Sequence[Outcome], rule: Rule) -> dict[int, float]:
    """Return the share of the error that may be spent by the end of each block.

    None where there is one look, which may spend all of it.
    """
    if rule.method.looks.once:
        return {}
    spent_s = {o.trial.block: began_s + o.machine_time_s for o, began_s in _timed(outcomes)}
    return {block: rule.method.looks.share(block, s) for block, s in spent_s.items()}


def _unsteady(trials: Sequence[LoadSeries]) -> tuple[list[str], list[str]]:
    """Return the treatments without a steady state, and those for which that is not ruled out yet.

    Their series jump, or still move after a very long trial.
    """
    noise = learn_from([t.series for t in trials]).noise
    series = by_key((trial.treatment, trial.series) for trial in trials)
    unsteady, wavering = jumping(series, noise)
    for name, own in series.items():
        long = [one for one in own if len(one) * BIN_S >= LONG_S]
        if name not in unsteady and moving(long, noise):
            unsteady.append(name)
        elif len(own) < ENOUGH and not long and moving(own, noise):
            wavering.append(name)  # its next trial is longer
    return unsteady, wavering


def steady_levels(trials: Sequence[LoadSeries], learned: Learned) -> Steady:
    """Return each trial's level, that of its end, and its variance about the steady one, as logs.

    The variance between server starts is not included.
    """
    both = np.zeros((2, len(trials)))
    for bins in {len(t.series) for t in trials}:
        which = [i for i, t in enumerate(trials) if len(t.series) == bins]
        series = np.array([trials[i].series for i in which])
        found = fit(series, learned.noise, learned.prior)
        both[:, which] = steady.level(series), steady.variance(found, learned.noise)
    return Steady(*both)


def learn_from(series: Sequence[Array]) -> Learned:
    """Return what is learned from the first trials; it changes when their number doubles."""
    some = series[: training_size(len(series))]
    return _learned(tuple(one.tobytes() for one in some))


@lru_cache(maxsize=64)
def _learned(series: tuple[bytes, ...]) -> Learned:
    """Return what is learned from some trials; cached, as verdicts and lengths both need it."""
    return learn([np.frombuffer(one) for one in series])


def training_size(trials: int) -> int:
    """Return the number of first trials to learn from, after `trials` trials."""
    count = _FIRST
    while 2 * count <= min(trials, _MOST):
        count *= 2
    return count
