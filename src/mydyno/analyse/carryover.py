"""Carry-over test: whether settings changed online take effect within their own segment."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import log, sqrt

from mydyno.analyse.contrasts import Effect
from mydyno.model import Outcome, Status

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
        if before.status is Status.OK and rise is not None:
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
    if outcome.status is not Status.OK or len(series) != 3 or min(series) <= 0:  # noqa: PLR2004
        return None
    return log(series[-1] / series[-2])
