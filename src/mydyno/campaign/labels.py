"""Labels of imported runs: from the user's rules, the file, the folder, or the order."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import PurePath

from mydyno.campaign.past import ImportedCell
from mydyno.model import SpecError
from mydyno.workloads.foreign import ParsedLog

_ENDINGS = (".gz", ".xz", ".zst", ".bz2", ".txt", ".log", ".out", ".json", ".csv")
_RULE = re.compile(r"(?P<label>[^=]+)(?:=(?P<pattern>.+?)(?::(?P<first>\d+)-(?P<last>\d+))?)?$")


@dataclass(frozen=True, slots=True)
class LogFile:
    """One parsed file: its path as given, and whether it was found in a folder given."""

    path: str
    found: bool
    log: ParsedLog


@dataclass(frozen=True, slots=True)
class Naming:
    """The user's rules ``NAME=PATTERN[:FIRST-LAST]``, and a pattern for lines above a run."""

    rules: Sequence[re.Match[str]]
    line: re.Pattern[str] | None

    @staticmethod
    def of(rules: Sequence[str], line: str | None) -> "Naming":
        """Return the parsed rules; raise `SpecError` for an invalid one."""
        found = []
        for rule in rules:
            match = _RULE.fullmatch(rule.strip())
            if not match:
                raise SpecError(
                    f"--label {rule}: invalid rule; write NAME, NAME=PATTERN or NAME=PATTERN:10-90"
                )
            found.append(match)
        try:
            return Naming(found, re.compile(line) if line else None)
        except re.error as error:
            raise SpecError(f"--label-line {line}: not a regular expression: {error}") from error

    def label(self, source: LogFile, first: int) -> str:
        """Return the label that the rules give the run at a line, counted from 0, or ``""``."""
        for rule in self.rules:
            here = not rule["first"] or int(rule["first"]) <= first + 1 <= int(rule["last"])
            name = PurePath(source.path).name
            pattern = rule["pattern"] or "*"
            if here and (fnmatch(source.path, pattern) or fnmatch(name, pattern)):
                return _clean(rule["label"])
        above = reversed(source.log.text.lines[: first + 1]) if self.line else ()
        found = next((m for line in above if self.line and (m := self.line.search(line))), None)
        return _clean(found[1] if found and found.re.groups else found[0]) if found else ""


def labels(
    sources: Sequence[LogFile], cells: Sequence[Sequence[ImportedCell]], naming: Naming
) -> tuple[list[list[str]], list[str]]:
    """Return a label for each run of each source, and warnings.

    A run without a rule is labelled by its file, or by its folder where files in several folders
    would share a name.  Runs of one workload in one file are repeats of each other, unless there is
    other text between them: then they are numbered, as a setting may have been changed in between.
    """
    names = _names(sources)
    found: list[list[str]] = []
    warnings: list[str] = []
    for source, name, mine in zip(sources, names, cells, strict=True):
        places = [reading.lines[0] for reading in source.log.readings]
        ruled = [naming.label(source, place) for place in places]
        numbers = _numbers(source, mine)
        found.append([rule or f"{name}{n}" for rule, n in zip(ruled, numbers, strict=True)])
        open_places = [i for i, rule in enumerate(ruled) if not rule]
        warnings += _doubtful(source, [mine[i] for i in open_places], numbers)
    return found, warnings


def _doubtful(
    source: LogFile, cells: Sequence[ImportedCell], numbers: Sequence[str]
) -> Iterator[str]:
    counts = Counter(cell.name for cell in cells)
    often = [name for name, count in counts.items() if count > 1]
    if not often:
        return
    what = f"{source.path}: contains {counts[often[0]]} runs of {often[0]}"
    how = "name them with --label-line REGEX or --label NAME=FILE:FIRST-LAST"
    if any(numbers):
        yield f"{what}, with other text between them; each is a treatment of its own; {how}"
    else:
        yield f"{what}, taken as repeats of one treatment; if they are not, {how}"


def _numbers(source: LogFile, cells: Sequence[ImportedCell]) -> list[str]:
    """Return ``#1``, ``#2`` … for runs with other text between them, else empty strings."""
    order: Counter[str] = Counter()
    numbers: list[str] = []
    for cell in cells:
        order[cell.name] += 1
        numbers.append(f"#{order[cell.name]}")
    spans = [(r.lines[0], r.lines[-1]) for r in source.log.readings]
    apart = any(spans[0][0] < n < spans[-1][1] for n in source.log.unparsed) if spans else False
    return numbers if apart and max(order.values()) > 1 else [""] * len(cells)


def _names(sources: Sequence[LogFile]) -> list[str]:
    """Return the name of each source: its file's, or its folder's where files share a name."""
    paths = [PurePath(source.path) for source in sources]
    stems = [_stem(path.name) for path in paths]
    folders = {path.parent for path, s in zip(paths, sources, strict=True) if s.found}
    given = [(path.name, path.parent) for path in paths]
    again = {name for name, folder in given if any(n == name and f != folder for n, f in given)}
    return [
        path.parent.name or stem
        if (source.found and len(folders) > 1) or path.name in again
        else stem
        for path, stem, source in zip(paths, stems, sources, strict=True)
    ]


def _stem(name: str) -> str:
    while name.endswith(_ENDINGS) and PurePath(name).stem:
        name = PurePath(name).stem
    return _clean("stdin" if name == "-" else name) or "log"


def _clean(label: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in label).split())[:80]
