"""The length of a trial: where the product of its uncertainty and its cost is least."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np
from numpy.typing import NDArray

from mydyno.model import Series, Window
from mydyno.stats import steady
from mydyno.stats.estimates import BIN_S
from mydyno.stats.sequential import SERVER_START_SD, gains, learn_from, moving
from mydyno.stats.steady import Fit, Learned, fit, learn_noise, left

Array = NDArray[np.float64]
LENGTHS_S = (
    30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 120.0, 150.0, 180.0, 220.0, 260.0, 300.0, 360.0, 420.0,
    500.0, 600.0, 720.0, 900.0,
)  # fmt: skip
_LEAST_S = 60.0  # six means of 10 s: fewer cannot separate a warm-up from noise
_KNOWN = 8  # trials needed to learn noise and warm-ups
_UNSURE = 0.03  # standard deviation of a level that is too large at any cost
BIAS = 0.02  # share of a usual warm-up that may be left at the end of a trial
_LONGER = 1.5  # times the last trial of a treatment that was still moving
_BLOCKS = 3  # least number of blocks of a treatment
_REACH = 3.0  # half width of its interval then, in standard errors
_TRIALS = 16  # the latest ones are used
_AHEAD = 4.0  # lengths up to this multiple of the present one are considered
_WORTH = 0.95  # another length must lower the price to this share
_STRETCH = 1.35  # times the end of a usual warm-up: beyond, another trial is worth more than length
_UNLEARNED_S = 340.0  # the same, while nothing is known of warm-ups


@dataclass(frozen=True, slots=True)
class Terms:
    """Overhead of a trial and its longest length, both in seconds, and the margin as a log.

    `bias` is how far the end of a usual trial may still be from its steady level, as a log;
    `lower` names the metrics that the spec declares better if lower; `alone`: a treatment has one
    trial, which must be as long as it is worth.
    """

    overhead_s: float = 20.0
    most_s: float = LENGTHS_S[-1]
    margin_log: float = 0.03
    bias: float = BIAS
    lower: frozenset[str] = frozenset()
    alone: bool = False

    def price(self, variance: float, seconds: float) -> float:
        """Return the relative cost of measuring a treatment by trials of this variance and length.

        That is the time of a trial times the number of trials, which grows with the standard
        deviation: with few trials, the width of an interval falls about as their
        number grows.  No trial needs to be more precise than the margin requires, since a few
        blocks are run in any case.
        """
        wanted = _BLOCKS * self.margin_log**2 / (2 * _REACH**2)
        return sqrt(max(variance + SERVER_START_SD**2, wanted)) * (seconds + self.overhead_s)


@dataclass(frozen=True, slots=True)
class Lengths:
    """When to check a running trial, from `least_s` on, and whether it may end then.

    If nothing is `learned` yet, noise is learned from the trials `before` and the running one.
    """

    terms: Terms
    learned: Learned | None
    before: Sequence[Array] = ()
    least_s: float = _LEAST_S

    @property
    def looks_s(self) -> Sequence[float]:
        """Return the lengths in seconds at which the trial is checked."""
        looks = tuple(s for s in LENGTHS_S if self.least_s <= s <= self.terms.most_s)
        if self.learned is None:
            looks = looks[:-1:2] + looks[-1:]  # a check costs more then
        return looks or (longest_s(self.terms.most_s, self.least_s),)

    def window(self, so_far: Series) -> Window | None:
        """Return the measured window (its end) of a trial that is long enough, else None."""
        series = gains(so_far, self.terms.lower)
        if len(series) == 0:
            return None
        learned = self.learned or learn_noise([*self.before, series])
        found = fit(series[None, :], learned.noise, learned.prior)
        now_s = len(series) * BIN_S
        most_s = min(self._most_s - BIN_S / 2, self.looks_s[-1] - BIN_S)
        if now_s < most_s and self._worth_more(found, learned, now_s):
            return None
        return Window(BIN_S * steady.begin(len(series)), now_s)

    @property
    def _most_s(self) -> float:
        if self.terms.alone:
            return inf
        return _UNLEARNED_S if self.learned is None else _STRETCH * self.least_s

    def _worth_more(self, found: Fit, learned: Learned, now_s: float) -> bool:
        if found.variance[0] > max(_UNSURE, self.terms.margin_log / 2) ** 2:
            return True
        here = self.terms.price(float(found.variance[0]), now_s)
        later = [s for s in LENGTHS_S if now_s < s <= _AHEAD * now_s]
        return any(
            self.terms.price(_forecast(found, learned, s), s) < _WORTH * here for s in later
        )  # fmt: skip


def still_to_come(so_far: Series, lower: Collection[str] = ()) -> float:
    """Return the expected rest of the warm-up at the end of a trial, as a log."""
    series = gains(so_far, lower)
    learned = learn_noise([series])
    found = fit(series[None, :], learned.noise, learned.prior)
    return float(np.abs(left(found)[0, -1]))


def lengths(before: Sequence[Series], terms: Terms) -> Lengths:
    """Return when to check the next trial: from the most efficient length of a usual trial on.

    Kalibera and Jones (2013) weigh a trial's own variance against that between trials; here the
    former includes the uncertainty of the warm-up, part of which more trials do not average out.
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


def longest_s(most_s: float, least_s: float) -> float:
    """Return the last look at a trial of `most_s`, in seconds, where the first is at `least_s`."""
    looks = [s for s in LENGTHS_S if least_s <= s <= most_s]
    return looks[-1] if looks else max(most_s, LENGTHS_S[0])


def unlearned_s(bias: float) -> float:
    """Return the least length in seconds of a trial while nothing is known of warm-ups.

    The default bias is checked on the trial itself; a smaller one holds for the first trial too.
    """
    return _LEAST_S if bias >= BIAS else _waited(Learned(), bias)


def _waited(learned: Learned, bias: float) -> float:
    """Return the seconds after which a usual trial is within `bias` of its steady level."""
    return float((learned.usually_left() >= bias).sum() * BIN_S)  # it only falls


def longer(lengths: Lengths, before: Sequence[Series]) -> Lengths:
    """Return the lengths for a treatment whose trials `before` were still moving at their ends."""
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
    variances: list[float] = []
    if enough := [one[:bins] for one in series if len(one) >= bins]:
        variances += fit(np.array(enough), learned.noise, learned.prior).variance.tolist()
    for one in series:
        if len(one) < bins:
            found = fit(one[None, :], learned.noise, learned.prior)
            variances.append(_forecast(found, learned, seconds))
    return float(np.median(variances))


def _forecast(found: Fit, learned: Learned, seconds: float) -> float:
    """Return the expected variance of the level at a later time.

    The variance between warm-up curves falls faster than that of noise, since wrong curves are
    ruled out: here with the square of the time, about as in simulated warm-ups.
    """
    bins = round(seconds / BIN_S)
    now, within = (learned.variance_within(found, n) for n in (found.bins, bins))
    rest = max(float(found.variance.mean()) - now, 0.0)
    return within + rest * (found.bins / bins) ** 2
