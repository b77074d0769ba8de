"""The forest plot: each treatment's ratio to the baseline with its interval, on one log axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.analyse.result import Ratio
from mydyno.report.axis import Axis, logarithmic
from mydyno.report.plot import Tick
from mydyno.report.units import TIMES

_BEYOND = 2.0  # an interval reaching this far past all estimates is cut, and an arrow says so
_PADDING = 0.06  # of the log span, so that no mark touches the edge
_LEAST = 1.05  # the axis spans at least 1/1.05 to 1.05


@dataclass(frozen=True, slots=True)
class Whisker:
    """A mark with its interval, in per cent of the axis; `cut_…` where it reaches past an end."""

    at: float
    low: float
    high: float
    cut_low: bool
    cut_high: bool


@dataclass(frozen=True, slots=True)
class Forest:
    """The axis all rows share: ticks, where ratio 1 stands, and the band within the margin."""

    axis: Axis
    ticks: tuple[Tick, ...]
    one: float
    band: tuple[float, float]

    def whisker(self, effect: Ratio) -> Whisker:
        """Return where an effect's mark and interval stand."""
        at, low, high = (self.axis.at(x) for x in (effect.ratio, effect.low, effect.high))
        return Whisker(at, low, high, effect.low < self.axis.low, effect.high > self.axis.high)


def forest(effects: Sequence[Ratio], margin: float) -> Forest:
    """Return the axis for these effects; `margin` is a ratio less one."""
    low, high = _reach(effects, 1 + margin)
    axis = logarithmic(low, high, 4)
    marks = tuple(Tick(axis.at(value), f"{value:g}{TIMES}") for value in axis.ticks)
    band = (axis.at(1 / (1 + margin)), axis.at(1 + margin))
    return Forest(axis, marks, axis.at(1.0), band)


def _reach(effects: Sequence[Ratio], margin: float) -> tuple[float, float]:
    estimates = [e.ratio for e in effects if e.ratio > 0 and math.isfinite(e.ratio)]
    inner_low = min([1 / margin, 1 / _LEAST, *estimates])
    inner_high = max([margin, _LEAST, *estimates])
    low = max(min([inner_low, *(e.low for e in effects)]), inner_low / _BEYOND)
    high = min(max([inner_high, *(e.high for e in effects)]), inner_high * _BEYOND)
    room = (high / low) ** _PADDING
    return low / room, high * room
