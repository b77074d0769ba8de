"""A fraction of a grid: the cells that tell most of what each factor, and each pair, does."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from pydoe import optimal_design

Cell = tuple[int, ...]  # the number of each factor's level
_SHARE = 0.5  # a third misses what only a pair does together too often (METHOD 6)
_SPARE = 4  # cells more than columns, so that an error can be told


def fraction(cells: Sequence[Cell], wanted: int | None) -> list[int]:
    """Return which cells of a whole grid are run, ascending; the first is always among them.

    They make the determinant of X'X large (D-optimality, exchanged as Fedorov, 1972, does) for
    main effects and all pairs, or for main effects alone where the cells do not tell pairs.
    `wanted` is how many; without it half of the grid.
    """
    count = wanted or max(round(_SHARE * len(cells)), 1)
    mains, pairs = _mains(cells), _pairs(cells)
    columns = pairs if count >= pairs.shape[1] + 1 + _SPARE else mains
    count = min(max(count, columns.shape[1] + 1), len(cells))
    if count == len(cells):
        return list(range(count))
    np.random.seed(1)  # noqa: NPY002 - the library draws its first cells from numpy's own state
    design, _ = optimal_design(columns, count, degree=1, criterion="D", method="fedorov")
    return _numbers(columns, design)


def _numbers(columns: NDArray[np.float64], design: NDArray[np.float64]) -> list[int]:
    """Return which rows of `columns` those of a design are, the first among them, each once."""
    known = {row.tobytes(): i for i, row in enumerate(columns)}
    return sorted({0, *(known[row.tobytes()] for row in np.ascontiguousarray(design))})


def _mains(cells: Sequence[Cell]) -> NDArray[np.float64]:
    """Return sum-to-zero contrasts of every factor (cells, levels less one of each)."""
    return np.hstack(_coded(cells))


def _pairs(cells: Sequence[Cell]) -> NDArray[np.float64]:
    """Return the contrasts and the products of those of two factors."""
    coded = _coded(cells)
    products = [
        (a[:, :, None] * b[:, None, :]).reshape(len(cells), -1) for a, b in combinations(coded, 2)
    ]
    return np.hstack([*coded, *products])


def _coded(cells: Sequence[Cell]) -> list[NDArray[np.float64]]:
    levels = np.array(cells)
    found = []
    for column in levels.T:
        contrasts = np.vstack([np.eye(column.max()), -np.ones(column.max())])
        found.append(contrasts[column])
    return found
