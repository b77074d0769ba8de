"""How long a trial is worth running: where its uncertainty times its cost is least."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import sqrt

import numpy as np
from numpy.typing import NDArray

from mydyno.analyse.sequential import SERVER_START_SD, gains, learn_from, training_size
from mydyno.analyse.settling import moving
from mydyno.analyse.steady import BIN_S, Fit, Learned, fit, learn_noise, left, tail
from mydyno.model import Series, Window

Array = NDArray[np.float64]
LENGTHS_S = (
    30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 120.0, 150.0, 180.0, 220.0, 260.0, 300.0, 360.0, 420.0,
    500.0, 600.0, 720.0, 900.0,
)  # fmt: skip
_LEAST_S = 60.0  # fewer means than six hardly tell a warm-up from noise
_KNOWN = 8  # trials that tell something of them
_UNSURE = 0.03  # standard deviation of a level that is too little to know, whatever it costs
BIAS = 0.02  # of a usual warm-up, that the end of a trial may still hold
_LONGER = 1.5  # times the last trial of a treatment that still moved
_BLOCKS = 3  # that treatments are at least in
_REACH = 4.5  # standard errors that an interval has then to either side (anytime)
_TRIALS = 16  # that are looked at
_AHEAD = 4.0  # times the present length are looked at
_WORTH = 0.95  # another length has to be better by this


@dataclass(frozen=True, slots=True)
class Terms:
    """What a trial costs besides its load, what it may take at most, and the margin as a log.

    `bias` is how far the end of a usual trial may still be from its steady level, as a log;
    `lower` names the metrics of which the spec says that less is better.
    """

    overhead_s: float = 20.0
    most_s: float = LENGTHS_S[-1]
    margin_log: float = 0.03
    bias: float = BIAS
    lower: frozenset[str] = frozenset()

    def price(self, variance: float, seconds: float) -> float:
        """Return what it costs to know a treatment by trials whose level has this variance.

        That is time by the number of trials, which grows with the standard deviation: the reach of
        an interval for any time falls about as their number does while they are few.  No trial need
        be more exact than the margin asks for, since a few blocks are run in any case.
        """
        wanted = _BLOCKS * self.margin_log**2 / (2 * _REACH**2)
        return sqrt(max(variance + SERVER_START_SD**2, wanted)) * (seconds + self.overhead_s)


@dataclass(frozen=True, slots=True)
class Lengths:
    """When to look at a trial, from `least_s` on, and what to make of it then.

    Where nothing is `learned` yet, it is learned from the trials `before` and the one that runs.
    """

    terms: Terms
    learned: Learned | None
    before: Sequence[Array] = ()
    least_s: float = _LEAST_S
    looks_s: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        looks = tuple(s for s in LENGTHS_S if self.least_s <= s <= self.terms.most_s)
        if self.learned is None:
            looks = looks[:-1:2] + looks[-1:]  # looking costs more then
        object.__setattr__(self, "looks_s", looks or (max(self.terms.most_s, LENGTHS_S[0]),))

    def window(self, so_far: Series) -> Window | None:
        """Return the measured window of a trial that has told enough, its end, else None."""
        series = gains(so_far, self.terms.lower)
        if len(series) == 0:
            return None
        learned = self.learned or learn_noise([*self.before, series])
        found = fit(series[None, :], learned.noise, learned.prior)
        now_s = len(series) * BIN_S
        if now_s < self.looks_s[-1] - BIN_S and self._worth_more(found, learned, now_s):
            return None
        return Window(BIN_S * tail.begin(len(series)), now_s)

    def _worth_more(self, found: Fit, learned: Learned, now_s: float) -> bool:
        if found.variance[0] > max(_UNSURE, self.terms.margin_log / 2) ** 2:
            return True
        here = self.terms.price(float(found.variance[0]), now_s)
        later = [s for s in LENGTHS_S if now_s < s <= _AHEAD * now_s]
        return any(
            self.terms.price(_forecast(found, learned, s), s) < _WORTH * here for s in later
        )  # fmt: skip


def still_to_come(so_far: Series, lower: Collection[str] = ()) -> float:
    """Return how much of a trial's warm-up is expected to be left at its end, as a log."""
    series = gains(so_far, lower)
    learned = learn_noise([series])
    found = fit(series[None, :], learned.noise, learned.prior)
    return float(np.abs(left(found)[0, -1]))


def training_trials(trials: int) -> int:
    """Return of how many first trials the lengths of the next one are learned."""
    return min(trials, training_size(trials))


def lengths(before: Sequence[Series], terms: Terms) -> Lengths:
    """Return the length in seconds that gives most for the machine time of a usual trial.

    Kalibera and Jones (2013) weigh a trial's own variance against that between trials; here the
    former includes what is not known of the warm-up, part of which more trials do not average out.
    """
    series = [gains(one, terms.lower) for one in before]
    if len(series) < _KNOWN:
        return Lengths(terms, None, series, unlearned_s(terms.bias))
    learned = learn_from(series)
    some = [one for one in series if len(one) * BIN_S >= LENGTHS_S[0]][-_TRIALS:]
    prices = [terms.price(_known(some, learned, s), s) for s in LENGTHS_S]
    best_s = LENGTHS_S[int(np.argmin(prices))]
    least_s = max(_LEAST_S, best_s, _waited(learned, terms.bias))
    return Lengths(terms, learned, (), least_s)


def unlearned_s(bias: float) -> float:
    """Return the seconds that a trial lasts at the least while nothing is known of warm-ups.

    The usual bias soon shows in the trial itself; a smaller one is promised to the first too.
    """
    return _LEAST_S if bias >= BIAS else _waited(Learned(), bias)


def _waited(learned: Learned, bias: float) -> float:
    """Return the seconds after which a usual trial is within `bias` of its steady level."""
    return float((learned.usually_left() >= bias).sum() * BIN_S)  # it only falls


def longer(lengths: Lengths, before: Sequence[Series]) -> Lengths:
    """Return the lengths for a treatment whose trials `before` still moved where they ended."""
    if lengths.learned is None or not before:
        return lengths
    last_s = before[-1].t_s[-1]
    logs = [gains(one, lengths.terms.lower) for one in before]
    if not moving(logs, lengths.learned.noise):
        return lengths
    return replace(lengths, least_s=min(_LONGER * last_s, lengths.terms.most_s))


def _known(series: Sequence[Array], learned: Learned, seconds: float) -> float:
    """Return the usual variance of the level of trials of that length."""
    bins = round(seconds / BIN_S)
    told: list[float] = []
    if enough := [one[:bins] for one in series if len(one) >= bins]:
        told += fit(np.array(enough), learned.noise, learned.prior).variance.tolist()
    for one in series:
        if len(one) < bins:
            found = fit(one[None, :], learned.noise, learned.prior)
            told.append(_forecast(found, learned, seconds))
    return float(np.median(told))


def _forecast(found: Fit, learned: Learned, seconds: float) -> float:
    """Return the variance of the level that is to be expected at a later time.

    What is not known of the shape falls faster than noise does, for the wrong ones fall away: here
    by the square of the time, which is about what simulated warm-ups do.
    """
    bins = round(seconds / BIN_S)
    now, within = (learned.variance_within(found, n) for n in (found.bins, bins))
    rest = max(float(found.variance.mean()) - now, 0.0)
    return within + rest * (found.bins / bins) ** 2
