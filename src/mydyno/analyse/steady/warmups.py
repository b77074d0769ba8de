"""Model curves of a warm-up: how throughput may rise to its steady level over time."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from mydyno.analyse.summary import BIN_S

Array = NDArray[np.float64]
MOST_BINS = 120  # 20 minutes; what has not settled by then is not steady

_COLD = 0.4  # the share that is missing at first, where the curve of the logarithm depends on it
_TAUS_S = np.geomspace(4.0, 600.0, 24)
_FAST_S = np.geomspace(6.0, 150.0, 14)
_SLOWER = (3.0, 5.0, 8.0)  # the second time scale, in units of the first
_PARTS = (0.6, 0.8, 0.9)  # of the rise that happens at the first time scale
_LONGEST_S = 900.0
_EDGES = np.unique(np.round(np.geomspace(1, 48, 22)).astype(int))  # bins before a step
_FIRST = np.unique(np.round(np.geomspace(1, 12, 10)).astype(int))  # bins before the first of three
_LATER = tuple((a, b) for a in (1.8, 2.4, 3.2) for b in (3.4, 4.4, 5.6) if b > 1.2 * a)
_STEPS = (0.5, 0.25, 0.25)  # of the rise, in three steps
_MOST_LEFT = 0.5  # of what is missing at first, at the end of a trial
_SEEN = 2  # bins after a step that are needed to separate it from noise
# How likely each family is before anything was seen.
_FAMILIES = {"flat": 0.5, "exponential": 0.22, "two": 0.13, "step": 0.05, "steps": 0.10}


@dataclass(frozen=True, slots=True)
class WarmupCurves:
    """`columns` (models, bins, 3): the level, and one or two curves that end at 0 (else zeros).

    Every curve is -1 at the start and 0 at the end, so that its factor is the log of what is
    missing at first.  `free` is the number of factors of a model; `seen` the number of bins from
    which on it can be identified; `log_weight` the log of its prior probability.
    """

    columns: Array
    free: NDArray[np.int64]
    seen: NDArray[np.int64]
    log_weight: Array

    def identifiable(self, bins: int) -> NDArray[np.bool_]:
        """Return a mask of the curves that a trial of this many bins can identify.

        Most of the rise lies within such a trial; the posterior of a slower curve would only
        repeat its prior.
        """
        left = -self.columns[:, bins - 1, 1:].sum(axis=1)
        return np.asarray((self.seen <= bins) & (left <= _MOST_LEFT))


@cache
def warmup_curves() -> WarmupCurves:
    """Return all curves; they are computed once."""
    found = list(_all())
    families = [family for family, *_ in found]
    weight = [np.log(_FAMILIES[f] / families.count(f)) for f in families]
    columns = [[np.ones(MOST_BINS), one, two] for _, one, two, _ in found]
    free = [int(one.any()) + int(two.any()) for _, one, two, _ in found]
    return WarmupCurves(
        columns=np.array(columns).transpose(0, 2, 1),
        free=np.array(free),
        seen=np.array([seen for *_, seen in found]),
        log_weight=np.array(weight),
    )


def _all() -> Iterator[tuple[str, Array, Array, int]]:
    times = (np.arange(MOST_BINS) + 0.5) * BIN_S
    none = np.zeros(MOST_BINS)
    yield "flat", none, none, 0
    for tau in _TAUS_S:
        yield "exponential", _log(np.exp(-times / tau)), none, 0
    for fast in _FAST_S:
        for slower in _SLOWER:
            if fast * slower > _LONGEST_S:
                continue
            for part in _PARTS:
                left = part * np.exp(-times / fast)
                left += (1 - part) * np.exp(-times / (fast * slower))
                yield "two", _log(left), none, 0
    yield from _one_or_two_steps(none)
    for first in _FIRST:
        for later in _LATER:
            edges = (first, round(first * later[0]), round(first * later[1]))
            curve = sum(p * _before(e) for p, e in zip(_STEPS, edges, strict=True))
            yield "steps", np.asarray(curve), none, int(edges[-1]) + _SEEN


def _one_or_two_steps(none: Array) -> Iterator[tuple[str, Array, Array, int]]:
    for edge in _EDGES:
        yield "step", _before(edge), none, int(edge) + _SEEN
    some = _EDGES[::2]
    for i, edge in enumerate(some):
        for other in some[i + 1 :]:
            yield "step", _before(edge), _before(other), int(other) + _SEEN


def _before(edge: int) -> Array:
    return np.where(np.arange(MOST_BINS) < edge, -1.0, 0.0)


def _log(left: Array) -> Array:
    """Return the curve of a logarithm of which the share `left`, from 1 to 0, is still missing."""
    return np.asarray(np.log1p(-_COLD * left) / -np.log1p(-_COLD))
