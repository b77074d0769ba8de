"""Short names of a grid's cells, and their legend: ``a1 b2`` for two long settings."""

import re
from collections.abc import Iterable, Mapping, Sequence

_LONG = 24  # characters of a name that a table has room for
_KEY = re.compile(r"(?:^|,)([^,=]+)=")


def short_names(treatments: Iterable[str]) -> dict[str, str]:
    """Return what a table calls each treatment: ``a1 b2`` for a cell of a grid, else its name.

    A letter is a factor and the number its level (`legend`).  Where all names are short, or another
    treatment has such a name, all stay as they are.
    """
    names = list(dict.fromkeys(treatments))
    cells = _cells(names)
    known = _levels(cells)
    short = {
        name: " ".join(
            f"{letter}{known[key].index(value) + 1}"
            for letter, (key, value) in zip(_letters(len(cell)), cell.items(), strict=True)
        )
        for name, cell in cells.items()
    }
    found = {name: short.get(name, name) for name in names}
    return found if len({*found.values()}) == len(names) else dict(zip(names, names, strict=True))


def legend(treatments: Iterable[str]) -> list[str]:
    """Return a line for each factor of the short names: ``a  flush_method: a1 fsync, a2 O_DIRECT``.

    It is empty where no name is shortened.
    """
    names = list(dict.fromkeys(treatments))
    if all(short == name for name, short in short_names(names).items()):
        return []
    known = _levels(_cells(names))
    return [
        f"{letter}  {key}: {', '.join(f'{letter}{n} {value}' for n, value in enumerate(values, 1))}"
        for letter, (key, values) in zip(_letters(len(known)), known.items(), strict=True)
    ]


def _cells(names: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the settings of each name that is made of them; a value may have a comma."""
    grid = [name for name in names if _KEY.match(name)]
    if len(grid) < 2 or not any(len(name) > _LONG for name in grid):  # noqa: PLR2004
        return {}
    common = set.intersection(*({*_KEY.findall(name)} for name in grid))
    if not common:  # names that hold a setting each, and are no cells of a grid
        return {}
    cells = {name: _split(name, common) for name in grid}
    return cells if len({tuple(cell) for cell in cells.values()}) == 1 else {}


def _split(name: str, keys: set[str]) -> dict[str, str]:
    starts = [found for found in _KEY.finditer(name) if found[1] in keys]
    ends = [*(found.start() for found in starts[1:]), len(name)]
    return {found[1]: name[found.end() : end] for found, end in zip(starts, ends, strict=True)}


def _levels(cells: Mapping[str, Mapping[str, str]]) -> dict[str, list[str]]:
    """Return the values of each factor, in the order in which they appear."""
    found: dict[str, dict[str, None]] = {}
    for cell in cells.values():
        for key, value in cell.items():
            found.setdefault(key, {})[value] = None
    return {key: [*values] for key, values in found.items()}


def _letters(count: int) -> list[str]:
    """Return a, b, c; after z comes aa."""
    alphabet = "abcdefghijklmnopqrstuvwxyz"
    return [alphabet[i % 26] * (1 + i // 26) for i in range(count)]
