"""What is measured where trials and campaign end by what was seen: intervals for any time.

Each trial gives a steady level, though it may still have been warming up; the levels of a
treatment are compared with the baseline's on a host that drifts.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf, isfinite, sqrt

import numpy as np
from numpy.typing import NDArray

from mydyno.analyse.anytime import critical, moderated
from mydyno.analyse.carryover import carries
from mydyno.analyse.contrasts import Effect
from mydyno.analyse.direction import is_lower
from mydyno.analyse.drift import TAU_S, Levels, levels, one_hot, trials_of
from mydyno.analyse.estimates import Estimates, log_of
from mydyno.analyse.rule import CONFIDENCE, Rule
from mydyno.analyse.settling import ENOUGH, LONG_S, jumping, moving
from mydyno.analyse.steady import BIN_S, Learned, fit, learn, tail
from mydyno.analyse.winners import shrink_best
from mydyno.model import Outcome, Series, Status

Array = NDArray[np.float64]
_FIRST = 8  # trials that noise and warm-ups are learned from at first; then twice as many, ...
_MOST = 64  # ... and no more: the rest would change little
_ENOUGH = 2
SERVER_START_SD = 0.015  # what one start differs from the next (METHOD 5.4)
_WILD = 9.0  # times the usual variance of a treatment's trials
_MANY = 5  # treatments that show what is usual
_MEDIAN = 0.6  # of squares of few trials, about, where their mean is 1
_HOT_TAU_S = 120.0  # how long what disturbs half minutes lasts: neighbours, checkpoints
_LOOKED = "~"  # behind the name of what only looked about
_LONGEST_S = 1e8  # three years
_LEAST = 1e-3  # of the mean: what a time without work counts as, for 0 has no logarithm


@dataclass(frozen=True, slots=True)
class LoadSeries:
    """One finished trial: the binned log response and the campaign's time at its middle."""

    treatment: str
    at_s: float
    series: Array
    block: int = 0
    id: int = 0


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
    values = {
        name: [sign * float(v) for v in steady.level[which]]
        for name, which in _by_treatment([t.treatment for t in trials]).items()
    }
    unsteady, wavering = _unsteady(trials) if rule.warming else ([], [])
    names = [_role(t, rule) for t in trials]
    of = _by_treatment(names)
    sure = (SERVER_START_SD**2 + steady.variance) / SERVER_START_SD**2 if rule.warming else None
    found, weight = _levels((names, [t.at_s for t in trials]), steady.level, rule, sure)
    if found is None:
        return Estimates(values=values)
    left = steady.level - found.level[_numbers(names)]
    effects = _effects(found, of, left / np.sqrt(weight), rule.baseline)
    if rule.choosing:
        number = list(of).index
        effects = shrink_best(effects, lambda a, b: found.contrast(number(a), number(b))[1])
    effects = _signed(effects, sign)
    response = rule.responses[workload]
    mine = [o for o in outcomes if o.trial.workload == workload]
    return Estimates(
        effects=effects,
        guards={name: _guard(outcomes, rule, workload, name) for name in rule.guards_of(workload)},
        values=values,
        spreads={name: [float(v) for v in left[which]] for name, which in of.items()},
        unsteady=unsteady,
        wavering=wavering,
        carries=rule.hot and carries(mine, response, effects),
    )


def steady_of(
    outcomes: Sequence[Outcome], rule: Rule, workload: str
) -> tuple[list[LoadSeries], Steady]:
    """Return the trials of a workload that went well, and the steady level of each."""
    response = rule.responses[workload]
    if not rule.warming:
        trials, level = _windows(outcomes, workload, response)
        return trials, Steady(rule.gain(1.0, workload) * level, np.zeros(len(level)))
    trials = load_series(outcomes, workload, response, rule.lower)
    if not trials:
        return [], Steady(np.zeros(0), np.zeros(0))
    return trials, steady_levels(trials, learn_from([t.series for t in trials]))


def _role(trial: LoadSeries, rule: Rule) -> str:
    """Return the name a trial is counted under: not its own, where it only looked about.

    The baseline was not chosen for what it showed, so that all of its trials count.
    """
    looked = trial.block < rule.proving_from and trial.treatment != rule.baseline
    return trial.treatment + _LOOKED if looked else trial.treatment


def load_series(
    outcomes: Sequence[Outcome], workload: str, response: str, lower: Collection[str] = ()
) -> list[LoadSeries]:
    """Return the trials of a workload that went well, with their places in the campaign's time.

    `lower` names the metrics of which the spec says that less is better.
    """
    found = []
    for outcome, began_s in _timed(outcomes):
        if outcome.trial.workload != workload or outcome.status is not Status.OK:
            continue
        series = next((s for s in outcome.series if s.name == response), None)
        if series is not None and series.values:
            at_s = began_s + outcome.machine_time_s - series.t_s[-1] / 2
            trial = outcome.trial
            logs = gains(series, lower)
            found.append(LoadSeries(trial.treatment, at_s, logs, trial.block, trial.id))
    return found


def _windows(
    outcomes: Sequence[Outcome], workload: str, metric: str
) -> tuple[list[LoadSeries], Array]:
    """Return the trials whose windows have a metric, without their series, and its logs."""
    trials, level = [], []
    for outcome, began_s in _timed(outcomes):
        value = log_of(outcome, metric) if outcome.trial.workload == workload else None
        if value is not None:
            at_s = began_s + outcome.machine_time_s / 2
            name, block = outcome.trial.treatment, outcome.trial.block
            trials.append(LoadSeries(name, at_s, np.zeros(0), block))
            level.append(value)
    return trials, np.array(level)


def _signed(effects: dict[str, Effect], sign: float) -> dict[str, Effect]:
    return effects if sign > 0 else {name: e.inverse() for name, e in effects.items()}


def gains(series: Series, lower: Collection[str] = ()) -> Array:
    """Return the logarithms of a binned response, of which more is better."""
    some = np.asarray(series.values, dtype=np.float64)
    with np.errstate(over="ignore"):
        mean = float(some.mean()) if len(some) else 0.0
    if not isfinite(mean):
        mean = float((some / len(some)).sum())  # of values whose sum no float can hold
    told = np.asarray(np.log(np.maximum(some, max(mean * _LEAST, 1e-12))))
    return -told if is_lower(series.name, lower) else told


def _timed(outcomes: Sequence[Outcome]) -> Iterator[tuple[Outcome, float]]:
    """Yield each outcome with the campaign's machine time at its beginning.

    A time that no trial takes, as a load may report it, is taken for the nearest that one may.
    """
    began_s = 0.0
    for outcome in outcomes:
        spent_s = min(max(outcome.machine_time_s, 0.0), _LONGEST_S)
        yield replace(outcome, machine_time_s=spent_s), began_s
        began_s += spent_s


def _by_treatment(names: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for i, name in enumerate(names):
        found.setdefault(name, []).append(i)
    return found


def _numbers(names: Sequence[str]) -> list[int]:
    number = {name: i for i, name in enumerate(_by_treatment(names))}
    return [number[name] for name in names]


def _levels(
    trials: tuple[Sequence[str], Sequence[float]],
    level: Array,
    rule: Rule,
    sure: Array | None = None,
) -> tuple[Levels | None, Array]:
    """Return the treatments' levels, None while there is no baseline or nothing to spare.

    Beside them stand the trials' variances relative to each other: `sure`, where that is known; a
    treatment that varies far more than the others counts for less, lest all seem to vary so.
    """
    names, at_s = trials
    count = len(set(names))
    weight = np.ones(len(level)) if sure is None else sure
    if rule.baseline not in names or len(names) < count + _ENOUGH:
        return None, weight
    memory_s = _HOT_TAU_S if rule.hot else TAU_S
    design, numbers = one_hot(_numbers(names)), np.array(_numbers(names))
    found = levels(trials_of(design, at_s, level, weight), memory_s)
    wild = _weights((level - found.level[numbers]) / np.sqrt(weight), numbers)
    if (wild > 1).any():
        weight = weight * wild
        found = levels(trials_of(design, at_s, level, weight), memory_s)
    return found, weight


def _weights(left: Array, numbers: NDArray[np.int64]) -> Array:
    """Return each trial's variance, where its treatment's own is large, relative to the usual."""
    counts = np.bincount(numbers)
    squares = np.bincount(numbers, left**2)
    several = counts > 1
    own = squares[several] / (counts[several] - 1)
    usual = float(np.median(own)) / _MEDIAN if len(own) >= _MANY else np.inf
    ratio = np.ones(len(counts))
    ratio[several] = own / max(usual, 1e-12)
    return np.where(ratio > _WILD, ratio, 1.0)[numbers]


def _effects(
    found: Levels, of: Mapping[str, Sequence[int]], left: Array, baseline: str
) -> dict[str, Effect]:
    """Return each treatment's effect against the baseline, where an interval can be given."""
    number = {name: i for i, name in enumerate(of)}
    claims = max(1, sum(not name.endswith(_LOOKED) for name in of) - 1)
    alpha = 1 - CONFIDENCE
    effects = {}
    for name, which in of.items():
        reach = critical(len(which), found.df, alpha)
        if name == baseline or name.endswith(_LOOKED) or reach == inf:
            continue
        log_ratio, se = found.contrast(number[name], number[baseline])
        own = moderated([float(v) for v in left[list(which)]], found.noise_sd**2)
        se *= max(1.0, sqrt(own) / found.noise_sd)
        claim = critical(len(which), found.df, alpha / claims)
        effects[name] = Effect(log_ratio, se, reach, len(which), claim)
    return effects


def _guard(
    outcomes: Sequence[Outcome], rule: Rule, workload: str, metric: str
) -> dict[str, Effect]:
    """Return the effects on a metric of the measured windows, each one for itself."""
    trials, level = _windows(outcomes, workload, metric)
    names = [_role(t, rule) for t in trials]
    found, weight = _levels((names, [t.at_s for t in trials]), level, rule)
    if found is None:
        return {}
    left = (level - found.level[_numbers(names)]) / np.sqrt(weight)
    return _effects(found, _by_treatment(names), left, rule.baseline)


def _unsteady(trials: Sequence[LoadSeries]) -> tuple[list[str], list[str]]:
    """Return the treatments that do not settle, and those of which that is not ruled out yet.

    They jump about, or still move after a very long trial.
    """
    noise = learn_from([t.series for t in trials]).noise
    series: dict[str, list[Array]] = {}
    for trial in trials:
        series.setdefault(trial.treatment, []).append(trial.series)
    surely, may = jumping(series, noise)
    for name, told in series.items():
        long = [one for one in told if len(one) * BIN_S >= LONG_S]
        if name not in surely and moving(long, noise):
            surely.append(name)
        elif len(told) < ENOUGH and not long and moving(told, noise):
            may.append(name)  # its next trial is longer
    return surely, may


def steady_levels(trials: Sequence[LoadSeries], learned: Learned) -> Steady:
    """Return each trial's level, that of its end, and its variance about the steady one, as logs.

    What one start of a server differs from the next is in neither of them.
    """
    told = np.zeros((2, len(trials)))
    for bins in {len(t.series) for t in trials}:
        which = [i for i, t in enumerate(trials) if len(t.series) == bins]
        series = np.array([trials[i].series for i in which])
        found = fit(series, learned.noise, learned.prior)
        told[:, which] = tail.level(series), tail.variance(found, learned.noise)
    return Steady(*told)


def learn_from(series: Sequence[Array]) -> Learned:
    """Return what the first trials teach: their number only doubles, so that it stays the same."""
    some = series[: training_size(len(series))]
    return _learned(tuple(one.tobytes() for one in some))


@lru_cache(maxsize=64)
def _learned(series: tuple[bytes, ...]) -> Learned:
    """Return what some trials teach, worked out once: verdicts and lengths both ask."""
    return learn([np.frombuffer(one) for one in series])


def training_size(trials: int) -> int:
    """Return of how many trials it is learned after so many."""
    count = _FIRST
    while 2 * count <= min(trials, _MOST):
        count *= 2
    return count
