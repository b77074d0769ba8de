"""The message for an unknown name, with the nearest known one."""

import difflib
from collections.abc import Iterable


def unknown_value(
    name: str,
    known: Iterable[str],
    kind: str = "value",
    *,
    prefix: str = "",
    listed: bool = True,
    cutoff: float = 0.6,
) -> str:
    """Return ``unknown value 'gird'; did you mean 'grid'?``.

    Without a `known` name that is similar enough (`cutoff`, as difflib has it) all known names
    follow, unless `listed` is False.  `kind` replaces "value", and `prefix` is put before names.
    """
    known = tuple(known)
    near = difflib.get_close_matches(name, known, 1, cutoff)
    hint = f"; known: {', '.join(prefix + each for each in known)}" if listed and known else ""
    if near:
        hint = f"; did you mean {prefix + near[0]!r}?"
    return f"unknown {kind} {prefix + name!r}{hint}"
