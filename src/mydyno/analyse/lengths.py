"""How long a trial is worth running: where its variance times its cost is least."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mydyno.analyse.sequential import learned_from, logs, taught_by
from mydyno.analyse.steady import BIN_S, Fit, Learned, fit, glance, left
from mydyno.model import Series, Window

Array = NDArray[np.float64]
LENGTHS_S = (
    30.0, 40.0, 50.0, 60.0, 80.0, 100.0, 120.0, 150.0, 180.0, 220.0, 260.0, 300.0, 360.0, 420.0,
    500.0, 600.0, 720.0, 900.0,
)  # fmt: skip
_UNKNOWN_S = 60.0  # the least that is run while nothing is known of warm-ups here
_KNOWN = 4  # trials that tell something of them
_STARTS_SD = 0.015  # what one start differs from the next (METHOD 5.4)
_TRIALS = 16  # that are looked at
_BLOCKS = 6  # about how many trials a treatment gets
_SHARED = 0.1  # the part of a warm-up's uncertainty that its trials have in common
_AHEAD = 4.0  # times the present length are looked at
_WORTH = 0.95  # another length has to be better by this
_BIAS = 0.004  # that is left in a measured window: an eighth of the usual margin (METHOD 5a)
_LATEST = 2 / 3  # of a trial, where its window begins at the latest


@dataclass(frozen=True, slots=True)
class Lengths:
    """When to look at a trial, from `least_s` to `most_s`, and what to make of it then.

    `overhead_s` is what a trial costs besides its load.  Where nothing is `learned` yet, it is
    learned from the trials `before` and the one that runs.
    """

    overhead_s: float
    learned: Learned | None
    before: Sequence[Array] = ()
    least_s: float = _UNKNOWN_S
    most_s: float = LENGTHS_S[-1]
    looks_s: Sequence[float] = field(init=False)

    def __post_init__(self) -> None:
        looks = tuple(s for s in LENGTHS_S if self.least_s <= s <= self.most_s)
        object.__setattr__(self, "looks_s", looks or (max(self.most_s, LENGTHS_S[0]),))

    def window(self, so_far: Series) -> Window | None:
        """Return the measured window of a trial that has told enough, else None."""
        series = gains(so_far)
        if len(series) == 0:
            return None
        learned = self.learned or glance([*self.before, series])
        found = fit(series[None, :], learned.texture, learned.prior)
        now_s = len(series) * BIN_S
        if now_s < self.looks_s[-1] - BIN_S and self._worth_more(found, learned, now_s):
            return None
        return Window(BIN_S * _settled(found), now_s)

    def _worth_more(self, found: Fit, learned: Learned, now_s: float) -> bool:
        here = self._price((float(found.variance[0]), float(found.warm[0])), now_s)
        later = [s for s in LENGTHS_S if now_s < s <= _AHEAD * now_s]
        return any(
            self._price(_forecast(found, learned, s), s) < _WORTH * here for s in later
        )  # fmt: skip

    def _price(self, variances: tuple[float, float], seconds: float) -> float:
        return _price(variances, seconds + self.overhead_s)


def still_to_come(so_far: Series) -> float:
    """Return how much of a trial's warm-up is expected to be left at its end, as a log."""
    series = gains(so_far)
    learned = glance([series])
    found = fit(series[None, :], learned.texture, learned.prior)
    return float(np.abs(left(found)[0, -1]))


def taught(trials: int) -> int:
    """Return of how many first trials the lengths of the next one are learned."""
    return min(trials, taught_by(trials))


def lengths(before: Sequence[Series], overhead_s: float, most_s: float | None = None) -> Lengths:
    """Return the length in seconds that gives most for the machine time of a usual trial.

    Kalibera and Jones (2013) weigh a trial's own variance against that between trials; here the
    former includes what is not known of the warm-up, part of which more trials do not average out.
    """
    series = [gains(one) for one in before]
    most_s = LENGTHS_S[-1] if most_s is None else most_s
    if len(series) < _KNOWN:
        return Lengths(overhead_s, None, series, most_s=most_s)
    learned = learned_from(series)
    some = [one for one in series if len(one) * BIN_S >= LENGTHS_S[0]][-_TRIALS:]
    prices = [_price(_known(some, learned, s), s + overhead_s) for s in LENGTHS_S]
    return Lengths(overhead_s, learned, (), LENGTHS_S[int(np.argmin(prices))], most_s)


def gains(series: Series) -> Array:
    """Return the logarithms of a response, of which more is better."""
    told = logs(series.values)
    return -told if series.name.startswith("latency_") else told


def _settled(found: Fit) -> int:
    """Return the first bin behind which what is left of the warm-up hardly biases the mean."""
    bias = np.abs(left(found)[0][::-1].cumsum() / np.arange(1, found.bins + 1))[::-1]
    latest = int(found.bins * _LATEST)
    return next((i for i in range(latest) if bias[i] <= _BIAS), latest)


def _price(variances: tuple[float, float], seconds: float) -> float:
    """Return the variance that a trial leaves of its treatment's level, times what it costs."""
    variance, warm = variances
    own = variance - _SHARED * warm + _STARTS_SD**2
    return (own + _BLOCKS * _SHARED * warm) * seconds


def _known(series: Sequence[Array], learned: Learned, seconds: float) -> tuple[float, float]:
    """Return the usual variance of trials of that length, and the warm-up's part of it."""
    bins = round(seconds / BIN_S)
    told = []
    for one in series:
        enough = len(one) >= bins
        found = fit(one[None, :bins] if enough else one[None, :], learned.texture, learned.prior)
        here = float(found.variance[0]), float(found.warm[0])
        told.append(here if enough else _forecast(found, learned, seconds))
    variance, warm = np.median(told, axis=0)
    return float(variance), float(warm)


def _forecast(found: Fit, learned: Learned, seconds: float) -> tuple[float, float]:
    """Return variance and warm-up's part at a later time, the shapes being as likely as now.

    What lies between the shapes falls as what lies within them does.
    """
    bins = round(seconds / BIN_S)
    now, within = (learned.variance_within(found, n) for n in (found.bins, bins))
    variance = float(found.variance.mean()) * within / now
    known = 1 / float(learned.texture.information(bins)[0, 0, 0])
    return variance, max(variance - known, 0.0)
