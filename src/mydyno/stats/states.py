"""Change points of the host: spent burst credits or other load change all treatments alike.

Trials of one state of the host are not compared with trials of another.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from math import log
from statistics import median

import numpy as np
from numpy.typing import NDArray

from mydyno.model import Finding
from mydyno.stats.contrasts import change
from mydyno.stats.estimates import BIN_S
from mydyno.stats.sequential import LoadSeries

Array = NDArray[np.float64]
_SHIFT = log(1.2)  # between two states; drift and neighbours hardly reach it
_SHARED = 0.75  # of the treatments seen in both states change with it, ...
_HALF = 0.5  # ... by at least half of it
_FEWEST = 2  # treatments that are in both states, or trials of one in either
_FALL = log(1.25)  # within a trial
_SIDE = 2  # bins to either side of a fall
_SUDDEN = 0.6  # share of a fall that happens at once: a slowdown takes longer
_NOISES = 4.0  # standard deviations of a mean of `_SIDE` bins
_END = 3  # a trial ends with a third of its bins, at least so many


def of_another_state(trials: Sequence[LoadSeries]) -> dict[int, Finding]:
    """Return, by trial id, why a trial does not belong to the host's most frequent state."""
    falls = _falls(trials)
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


def _falls(trials: Sequence[LoadSeries]) -> dict[int, Finding]:
    """Return the trials in which performance fell and stayed low, as in the trials after them."""
    found: dict[int, Finding] = {}
    for i, trial in enumerate(trials):
        if (at := _fall(trial.series)) and _went_on(trials, i, at[1]):
            figures = {"fall": -change(-at[1]), "at_s": at[0] * BIN_S}
            found[trial.id] = Finding("lasting-fall", figures)
    return found


def _went_on(trials: Sequence[LoadSeries], at: int, depth: float) -> bool:
    """Return whether other treatments have fallen with a trial, or none has been seen since."""
    mine = trials[at].treatment
    before = _by_treatment(t for t in trials[:at] if t.treatment != mine)
    after = _by_treatment(t for t in trials[at + 1 :] if t.treatment in before)
    shifts = [np.mean(before[name]) - np.mean(later) for name, later in after.items()]
    return not shifts or float(np.median(shifts)) >= _HALF * depth


def _fall(series: Array) -> tuple[int, float] | None:
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
    return (at, depth) if depth >= max(_FALL, _NOISES * noise) and stays and sudden else None


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
    if len(trials) < 2 * _FEWEST:
        return None
    names = {name: i for i, name in enumerate(dict.fromkeys(t.treatment for t in trials))}
    hot = np.zeros((len(trials), len(names)))
    hot[np.arange(len(trials)), [names[t.treatment] for t in trials]] = 1.0
    ends = np.array([_end(t.series) for t in trials])
    counts = hot.sum(axis=0)
    rest = ends - hot @ (hot.T @ ends / counts)
    before = hot.cumsum(axis=0)[:-1]
    spread = (before * (counts - before) / counts).sum(axis=1)
    sums = rest.cumsum()[:-1]
    gain = np.where(spread > 0, sums**2 / np.maximum(spread, 1e-9), 0.0)
    gain[: _FEWEST - 1] = gain[len(gain) - _FEWEST + 1 :] = 0.0
    at = int(gain.argmax())
    shift = -sums[at] / max(spread[at], 1e-9)
    both = (before[at] > 0) & (before[at] < counts)
    often = (before[at] >= _FEWEST) & (counts - before[at] >= _FEWEST)
    if abs(shift) < _SHIFT or (both.sum() < _FEWEST and not often.any()):
        return None
    early, late = hot[: at + 1, both], hot[at + 1 :, both]
    moved = (late.T @ ends[at + 1 :]) / late.sum(axis=0) - (early.T @ ends[: at + 1]) / early.sum(
        axis=0
    )
    shared = (moved / shift >= _HALF).mean() >= _SHARED
    return at + 1 if shared else None


def _end(series: Array) -> float:
    last = series[-max(_END, len(series) // 3) :].tolist()
    return float(median(last))  # faster than numpy for so few values


def _by_treatment(trials: Iterable[LoadSeries]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for trial in trials:
        found.setdefault(trial.treatment, []).append(_end(trial.series))
    return found


def _shift(era: Sequence[LoadSeries], main: Sequence[LoadSeries]) -> float:
    """Return how far an era lies above the other, as a log, by treatments that are in both."""
    here, there = _by_treatment(era), _by_treatment(main)
    both = [float(np.mean(here[n]) - np.mean(there[n])) for n in here.keys() & there.keys()]
    return float(np.mean(both)) if both else 0.0
