"""A fraction of a grid: the cells that tell most of what each factor, and each pair, does."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Cell = tuple[int, ...]  # the number of each factor's level
_Matrix = NDArray[np.float64]
_SHARE = 0.5  # a third misses what only a pair does together too often (METHOD 6)
_VAGUE, _LIKELY_SMALL = 1e-3, 1.0  # what is held of an effect beforehand: 1 / its variance
# Cells that are equally good are taken in order, whatever a processor makes of the last digits: a
# campaign that goes on elsewhere has the same ones.
_TIE = 1e-9
_GAIN = 1e-6


def fraction(cells: Sequence[Cell], wanted: int | None) -> list[int]:
    """Return which cells of a whole grid are run, ascending; the first is always among them.

    They make the determinant of X'X + K large, for main effects and all pairs: Bayesian
    D-optimality (DuMouchel and Jones, 1994), where pairs are likely small and so may be more than
    the cells could tell.  Cells are added one at a time, then exchanged as Fedorov (1972) does.
    `wanted` is how many; without it half of the grid.
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
    """Return the covariances (cells, cells) of what the chosen cells foretell of every cell."""
    told = rows[list(chosen)]
    found: _Matrix = rows @ np.linalg.solve(told.T @ told + prior, rows.T)
    return found


def _exchange(spread: _Matrix, chosen: Sequence[int]) -> tuple[int, int] | None:
    """Return the place in `chosen`, and the cell for it, that gain most; None where none does.

    The first cell keeps its place.
    """
    out, own = list(chosen[1:]), spread.diagonal()
    gains = (1 - own[out])[:, None] * (1 + own) + spread[out] ** 2  # factors of the determinant
    gains[:, list(chosen)] = 0.0
    best = _first_best(gains.ravel())
    place, cell = divmod(best, len(own))
    return (place + 1, cell) if gains[place, cell] > 1 + _GAIN else None


def _first_best(values: _Matrix) -> int:
    """Return where the first is of those that are the largest but for rounding."""
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
