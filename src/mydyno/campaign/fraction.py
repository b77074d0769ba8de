"""A D-optimal fraction of a grid, for main effects and two-factor interactions."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Cell = tuple[int, ...]  # the number of each factor's level
_Matrix = NDArray[np.float64]
_SHARE = 0.5  # a third misses interactions too often
_VAGUE, _LIKELY_SMALL = 1e-3, 1.0  # prior precision (1 / variance) of an effect
# Ties are broken by order, whatever the rounding of a processor: a campaign that is resumed on
# another machine has the same cells.
_TIE = 1e-9
_GAIN = 1e-6


def fraction(cells: Sequence[Cell], wanted: int | None) -> list[int]:
    """Return which cells of a full grid are run, ascending; the first is always included.

    They make the determinant of X'X + K large, for main effects and all pairs: Bayesian
    D-optimality (DuMouchel and Jones, 1994): interactions are likely small, so there may be more of
    them than the cells could estimate.  Cells are added one at a time, then exchanged as Fedorov
    (1972) does. `wanted` is how many; without it half of the grid.
    """
    mains, pairs = _mains(cells), _pairs(cells)
    rows = np.hstack([np.ones((len(cells), 1)), mains, pairs])
    count = wanted or max(round(_SHARE * len(cells)), 1)
    count = min(max(count, mains.shape[1] + 1), len(cells))
    known = np.full(rows.shape[1], _VAGUE)
    known[1 + mains.shape[1] :] = _LIKELY_SMALL
    prior = np.diag(known)
    chosen = [0]
    while len(chosen) < count:
        spread = _spread(rows, chosen, prior).diagonal().copy()
        spread[chosen] = -1.0
        chosen.append(_first_best(spread))
    while (swap := _exchange(_spread(rows, chosen, prior), chosen)) is not None:
        chosen[swap[0]] = swap[1]
    return sorted(chosen)


def _spread(rows: _Matrix, chosen: Sequence[int], prior: _Matrix) -> _Matrix:
    """Return the covariances (cells, cells) of the predictions from the chosen cells."""
    selected = rows[list(chosen)]
    found: _Matrix = rows @ np.linalg.solve(selected.T @ selected + prior, rows.T)
    return found


def _exchange(spread: _Matrix, chosen: Sequence[int]) -> tuple[int, int] | None:
    """Return the index in `chosen` and the cell to exchange it for, or None if none improves it.

    The first cell keeps its place.
    """
    out, own = list(chosen[1:]), spread.diagonal()
    gains = (1 - own[out])[:, None] * (1 + own) + spread[out] ** 2  # factors of the determinant
    gains[:, list(chosen)] = 0.0
    best = _first_best(gains.ravel())
    place, cell = divmod(best, len(own))
    return (place + 1, cell) if gains[place, cell] > 1 + _GAIN else None


def _first_best(values: _Matrix) -> int:
    """Return the index of the first value that is the largest, up to rounding."""
    most = values.max(initial=-np.inf)
    return int(np.flatnonzero(values >= most - _TIE * abs(most))[0]) if values.size else 0


def _mains(cells: Sequence[Cell]) -> _Matrix:
    """Return sum-to-zero contrasts of every factor (cells, levels less one of each)."""
    return np.hstack(_coded(cells))


def _pairs(cells: Sequence[Cell]) -> _Matrix:
    """Return the products of the contrasts of two factors (cells, those of every pair)."""
    coded = _coded(cells)
    products = [
        (a[:, :, None] * b[:, None, :]).reshape(len(cells), -1) for a, b in combinations(coded, 2)
    ]
    return np.hstack([np.empty((len(cells), 0)), *products])


def _coded(cells: Sequence[Cell]) -> list[_Matrix]:
    levels = np.array(cells)
    found = []
    for column in levels.T:
        contrasts = np.vstack([np.eye(column.max()), -np.ones(column.max())])
        found.append(contrasts[column])
    return found
