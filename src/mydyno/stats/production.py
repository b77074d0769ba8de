"""The effect of a change in production: hours before and after, with an interval that holds.

Textbook tests take hours as independent, and are wrong in a quarter and more of the histories in
which nothing changed.  Here the same estimator is applied at every earlier day, where
nothing changed (a placebo); the spread of these is the error.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mydyno.stats.effects import student

Floats = npt.NDArray[np.float64]
Verdict = Literal["keep", "revert", "wait"]

DAY_H, WEEK_H = 24, 168
LEAST_H = 4 * WEEK_H  # of history before the change
LEAST_PLACEBOS = 10
MOST_OUTSIDE = 0.3  # share of hours after the change whose load was never seen before
GUARD = 0.03  # what a change may cost and still be kept
_TRAINED_H = 4 * WEEK_H  # the model of one day uses so much before it
_LEAST_TRAINED_H = 2 * WEEK_H
# The level to compare with is that of the last day: the longer it is, the more drift is in it.
# Which is best cannot be chosen by the placebos: the least of several spreads is too small.
_REFERENCE_H = DAY_H
_HARMONICS = 3
_HUBER = 1.345
_MAD_SD = 1.4826  # of normal noise, its standard deviation over its median deviation
_CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class History:
    """Hours of one server: `hour` since the epoch in UTC, and the mean of each hour.

    `value` is what is judged (a latency: less is better), `load` what was asked (statements a
    second).  Hours without data are absent.
    """

    hour: npt.NDArray[np.int64]
    value: Floats
    load: Floats


@dataclass(frozen=True, slots=True)
class ProductionEffect:
    """The ratio of the value after a change to what was foretold, with its interval.

    `half_width` is the factor that this history can show, less 1: known before the change.
    `placebos` are the ratios of days on which nothing changed.  `hours` were compared; `outside` is
    the share left out, as their load was never seen before.
    """

    ratio: float
    low: float
    high: float
    half_width: float
    placebos: Sequence[float]
    hours: int
    outside: float

    @property
    def verdict(self) -> Verdict:
        """Return whether to keep the change, to revert it, or to wait for more hours."""
        if self.low > 1 + GUARD:
            return "revert"
        return "keep" if self.high < 1 + GUARD else "wait"


class TooLittleError(ValueError):
    """A history that cannot show anything; the message is the reason."""


@dataclass(frozen=True, slots=True)
class _Design:
    """Log values and the columns that explain them, an hour a row."""

    hour: npt.NDArray[np.int64]
    y: Floats
    x: Floats
    load: Floats


def effect(
    history: History, change_h: int, hours: int, control: History | None = None
) -> ProductionEffect:
    """Return the effect of a change at an hour, from up to so many hours after it.

    With a `control`, an untouched server under the same load, the values are compared with its own.
    Raises `TooLittleError`.
    """
    design = _design(history, control)
    after = (design.hour >= change_h) & (design.hour < change_h + hours)
    if not after.any():
        raise TooLittleError("no hour after the change has data")
    # the error of a longer time is smaller: where some of it is still to come, it is not that
    hours = int(design.hour[after].max()) - change_h + 1
    if after.sum() < hours / 2:
        raise TooLittleError(f"{after.sum()} of the {hours} hours after the change have data")
    placebos = _placebos(design, change_h, hours)
    seen = design.load[design.hour < change_h]
    inside = after & (design.load >= seen.min()) & (design.load <= seen.max())
    if not ((design.hour < change_h) & (design.hour >= change_h - _REFERENCE_H)).any():
        raise TooLittleError("no hour of the day before the change has data")
    outside = float(1 - inside.sum() / after.sum())
    if outside > MOST_OUTSIDE:
        raise TooLittleError(
            f"not comparable: the load of {outside:.0%} of the hours after the change was never "
            "seen before"
        )
    length = max(1, int(np.ceil(inside.sum() / DAY_H)))  # days that share hours count once
    half, centre = _error(placebos, length)
    found = _estimate(design, change_h, inside) - centre
    low, mid, high = np.exp([found - half, found, found + half])
    shown = tuple(float(v) for v in np.exp(placebos - centre))
    return ProductionEffect(
        float(mid),
        float(low),
        float(high),
        float(np.expm1(half)),
        shown,
        int(inside.sum()),
        outside,
    )


def can_show(history: History, change_h: int, hours: int, control: History | None = None) -> float:
    """Return the change that could be shown after so many hours, as a factor less 1."""
    placebos = _placebos(_design(history, control), change_h, hours)
    return float(np.expm1(_error(placebos, max(1, hours // DAY_H))[0]))


def _design(history: History, control: History | None) -> _Design:
    hour, y, load = history.hour, np.log(history.value), np.log(history.load)
    if control is not None:
        hour, own, other = np.intersect1d(hour, control.hour, return_indices=True)
        y = y[own] - np.log(control.value[other])
        load = load[own] - np.log(control.load[other])
    angle = 2 * np.pi * (hour % DAY_H)[:, None] * np.arange(1, _HARMONICS + 1) / DAY_H
    weekday = (hour // DAY_H + 3) % 7  # the epoch began on a Thursday; Monday is 0
    weekend = (weekday >= 5).astype(float)[:, None]  # noqa: PLR2004 - Saturday
    x = np.hstack([np.ones((len(hour), 1)), np.sin(angle), np.cos(angle), weekend])
    return _Design(hour, y, x, load)


def _estimate(design: _Design, at: int, after: npt.NDArray[np.bool_]) -> float:
    """Return the median of the log values after, less what was foretold, less its last error."""
    before = (design.hour < at) & (design.hour >= at - _TRAINED_H)
    left = _residuals(design, before, before | after)
    last = before & (design.hour >= at - _REFERENCE_H)
    return float(np.median(left[after]) - np.median(left[last]))


def _residuals(
    design: _Design, train: npt.NDArray[np.bool_], wanted: npt.NDArray[np.bool_]
) -> Floats:
    """Return the residuals of the rows that are wanted, by a robust fit to those to train on."""
    middle, scale = design.load[train].mean(), design.load[train].std() or 1.0
    load = ((design.load - middle) / scale)[:, None]
    x = np.hstack([design.x, load, load**2])
    rows, y = x[train], design.y[train]
    weights = np.ones(len(y))
    for _ in range(2):
        fitted = np.linalg.lstsq(rows * weights[:, None], y * weights, rcond=None)[0]
        errors = np.abs(y - rows @ fitted)
        spread = _MAD_SD * float(np.median(errors)) or 1.0
        weights = np.sqrt(np.minimum(1.0, _HUBER * spread / np.maximum(errors, 1e-12)))
    left = np.full(len(design.y), np.nan)
    left[wanted] = design.y[wanted] - x[wanted] @ fitted
    return left


def _placebos(design: _Design, change_h: int, hours: int) -> Floats:
    """Return the log effects of days without a change."""
    before = design.hour[design.hour < change_h]
    if not len(before) or change_h - before[0] < LEAST_H:
        have = (change_h - before[0]) / WEEK_H if len(before) else 0.0
        raise TooLittleError(
            f"{have:.1f} weeks before the change; at least {LEAST_H // WEEK_H} are needed"
        )
    first = int(before[0]) + _LEAST_TRAINED_H
    found = []
    for at in range(change_h - hours, first - 1, -DAY_H):
        after = (design.hour >= at) & (design.hour < at + hours)
        train = (design.hour < at) & (design.hour >= at - _TRAINED_H)
        last = train & (design.hour >= at - _REFERENCE_H)
        if after.sum() >= hours / 2 and train.sum() >= _LEAST_TRAINED_H / 2 and last.any():
            found.append(_estimate(design, at, after))
    if len(found) < LEAST_PLACEBOS:
        raise TooLittleError(
            f"{len(found)} days before the change can be compared; {LEAST_PLACEBOS} are needed"
        )
    return np.array(found)


def _spread(placebos: Floats) -> float:
    """Return the spread of the placebos: of SD and MAD the larger."""
    deviation = np.abs(placebos - np.median(placebos))
    return max(float(placebos.std(ddof=1)), _MAD_SD * float(np.median(deviation)))


def _error(placebos: Floats, days: int) -> tuple[float, float]:
    """Return the half width of the log effect's interval, and the placebos' centre."""
    count = max(2.0, len(placebos) / days)  # neighbours of several days share hours
    critical = student(1 - _CONFIDENCE, count - 1)
    return critical * _spread(placebos) * float(np.sqrt(1 + 1 / count)), float(np.median(placebos))
