"""Option files as a server reads them: which line of which file sets what."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from mydyno.model.text import uncommented
from mydyno.stack.flavours import flavours

_INCLUDE = re.compile(r"!include(dir)?\s+(.+)")
_GROUP = re.compile(r"\[([^\]]+)\]")
_SUFFIX = {"K": 2.0**10, "M": 2.0**20, "G": 2.0**30, "T": 2.0**40, "P": 2.0**50}
_SIZE = re.compile(r"([+-]?\d+(?:\.\d+)?)([KMGTP]?)", re.IGNORECASE)
_BOOLEANS = {"ON": 1.0, "TRUE": 1.0, "YES": 1.0, "OFF": 0.0, "FALSE": 0.0, "NO": 0.0}
_NO_DECIMALS = 10.0  # from here on, numbers are written without decimals
_LOOSE = "loose_"


@dataclass(frozen=True, slots=True)
class Option:
    """One option that a file sets; `name` is that of the variable, with underscores.

    A server that does not know a `loose` one starts all the same.
    """

    name: str
    value: str
    path: str
    line: int
    loose: bool = False

    @property
    def where(self) -> str:
        """Return its place: ``/etc/mysql/my.cnf:31``."""
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Include:
    """A directive to read another file, or all files of a folder."""

    path: str
    folder: bool


def groups(flavour: str, version: Sequence[int], suffix: str = "") -> frozenset[str]:
    """Return the groups of an option file that a server reads, those with its suffix too."""
    series = ".".join(map(str, version[:2]))
    names = flavours()[flavour].usual.groups
    own = [*names, *(f"{name}-{series}" for name in names)]
    return frozenset([*own, *(f"{name}{suffix}" for name in own)])


def read(path: str, text: str, wanted: frozenset[str]) -> Iterator[Option | Include]:
    """Yield what a file sets in the groups that are wanted, and what it includes, in order."""
    group = ""
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line[0] in "#;":
            continue
        line = uncommented(line)
        if include := _INCLUDE.fullmatch(line):
            yield Include(include[2].strip(), bool(include[1]))
        elif found := _GROUP.match(line):
            group = found[1].strip()
        elif group in wanted:
            yield _option(line, path, number)


def _option(line: str, path: str, number: int) -> Option:
    key, mark, value = line.partition("=")
    name = key.strip().replace("-", "_").lower()
    text = _unquoted(value) if mark else "ON"
    loose = name.startswith(_LOOSE)
    name = name.removeprefix(_LOOSE)
    for prefix, meaning in (("skip_", "OFF"), ("disable_", "OFF"), ("enable_", "ON")):
        if name.startswith(prefix) and not mark and name not in _OWN:
            return Option(name.removeprefix(prefix), meaning, path, number, loose)
    return Option(name, text, path, number, loose)


# options that begin with skip_ and are variables of that name
_OWN = {"skip_name_resolve", "skip_networking", "skip_external_locking", "skip_show_database"}


def _unquoted(value: str) -> str:
    text = value.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return text


def every(start: Sequence[str], texts: Mapping[str, str], wanted: frozenset[str]) -> list[Option]:
    """Return all options of the files and of what they include, in the order of reading.

    `texts` holds the files that are there; those of a folder are read by name.
    """
    found: list[Option] = []
    seen: set[str] = set()

    def one(path: str) -> None:
        if path in seen or path not in texts:
            return
        seen.add(path)
        for item in read(path, texts[path], wanted):
            if isinstance(item, Option):
                found.append(item)
            elif item.folder:
                inside = [p for p in texts if str(PurePosixPath(p).parent) == item.path.rstrip("/")]
                for each in sorted(p for p in inside if p.endswith((".cnf", ".ini"))):
                    one(each)
            else:
                one(item.path)

    for path in start:
        one(path)
    return found


def number(text: str) -> float | None:
    """Return a value as a number: ``64M``, ``ON``, ``0.5``; None for text."""
    if text.upper() in _BOOLEANS:
        return _BOOLEANS[text.upper()]
    found = _SIZE.fullmatch(text.strip())
    return float(found[1]) * _SUFFIX.get(found[2].upper(), 1.0) if found else None


def written(value: float) -> str:
    """Return a number as an option file takes it: ``512M``, ``64K``, ``2000``."""
    rounded = round(value)
    for suffix, size in (("G", 1 << 30), ("M", 1 << 20), ("K", 1 << 10)):
        if rounded >= 64 << 10 and rounded % size == 0:
            return f"{rounded // size}{suffix}"
    return str(rounded) if rounded == value or abs(value) >= _NO_DECIMALS else f"{value:g}"
