"""Imported runs: grouped from parsed logs, as trials of a finished campaign, as a run directory."""

import hashlib
import os
import re
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePath

from mydyno.campaign.designs import DesignKind, Fixed
from mydyno.campaign.spec import toml
from mydyno.journal.register import RunDir
from mydyno.logs import ParsedLog, ParsedRun
from mydyno.model import (
    CampaignError,
    Metric,
    Outcome,
    Reset,
    SpecError,
    Trial,
    TrialStatus,
    Window,
)
from mydyno.stats import Method, summarise, tens, unit_of

KIND = "imported"  # of a design, and the tool of its workloads
_UNKNOWN_TRAIT = "?"


@dataclass(frozen=True, slots=True)
class Past:
    """The design of a finished campaign: it has no next trial."""

    blocks = budget_s = total = size = None

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return None: imported runs are not repeated."""
        del history
        return None


@dataclass(frozen=True, slots=True)
class LogLength(Fixed):
    """Runs as long as their logs, less a warm-up."""

    label = "imported: each run has the length of its log, less a warm-up that was left out"


IMPORTED = DesignKind(
    "imported: existing runs are compared, and no new trials are run",
    lambda _inputs, _rule: Past(),
    lambda inputs: LogLength(inputs.spec.protocol.warmup_s or 0.0, 0.0),
    Method(guards_may_lack=True),
    runs=False,
)


@dataclass(frozen=True, slots=True)
class ImportedCell:
    """A workload of imported runs: its response and its known traits."""

    name: str
    response: str
    traits: Mapping[str, str]


def cells_of(readings: Sequence[ParsedRun]) -> list[ImportedCell]:
    """Return the workload of each run: the same for runs without a known difference.

    Names are like those of a spec, ``rndrd/24``, followed by what differs: ``rndrd/24,files=4``.
    A trait that only some logs contain separates runs only where these logs differ in it.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for place, reading in enumerate(readings):
        alike.setdefault((_plain_name(reading), reading.response), []).append(place)
    several = Counter(name for name, _ in alike)
    found: dict[int, ImportedCell] = {}
    for (name, response), places in alike.items():
        full_name = f"{name},{response}" if several[name] > 1 else name
        found |= _separated(full_name, response, [(p, readings[p].traits) for p in places])
    return [found[place] for place in range(len(readings))]


def _plain_name(reading: ParsedRun) -> str:
    threads = reading.traits.get("threads")
    return f"{reading.name}/{threads}" if threads else reading.name


def _separated(
    name: str, response: str, runs: Sequence[tuple[int, Mapping[str, str]]]
) -> Iterator[tuple[int, ImportedCell]]:
    keys = dict.fromkeys(key for _, traits in runs for key in traits)
    levels = {key: {t[key] for _, t in runs if key in t} for key in keys}
    differing = [key for key, values in levels.items() if len(values) > 1]
    names = {
        place: ",".join([name, *(f"{key}={traits.get(key, _UNKNOWN_TRAIT)}" for key in differing)])
        for place, traits in runs
    }
    for place, _ in runs:
        same = [traits for other, traits in runs if names[other] == names[place]]
        known = {key: value for traits in same for key, value in traits.items()}
        yield place, ImportedCell(names[place], response, known)


FILES = "imported files.json"  # in facts; where it is, nothing is run
_MARGINS = {"p999": 0.10, "p99": 0.10, "p95": 0.10}
_UNKNOWN = (
    "imported runs: their logs do not contain settings, order or other load of the machine; where "
    "runs were not interleaved, a drift of the machine looks like an effect"
)
_SINGLE = (
    "every treatment has one run only: the difference between two runs of the same treatment is "
    "unknown (intervals within a run do not show it, as they share its state), so no verdict is "
    "possible; repeat each treatment at least three times, in turn"
)


@dataclass(frozen=True, slots=True)
class LoggedRun:
    """One imported run: its trial, its workload, its parsed log, and the path of the log."""

    trial: Trial
    cell: ImportedCell
    reading: ParsedRun
    source: str

    @property
    def place(self) -> str:
        """Return the file and the lines, counted from 1."""
        first, last = self.reading.span
        return f"{self.source}:{first + 1}-{last + 1}"


def runs_of(
    labelled: Sequence[tuple[str, ImportedCell, ParsedRun, str]],
) -> tuple[list[LoggedRun], list[str]]:
    """Return the runs as trials, and a line for each that is left out; repeats are blocks.

    Of identical logs only the first is used.
    """
    blocks: Counter[tuple[str, str]] = Counter()
    seen: dict[str, str] = {}
    runs: list[LoggedRun] = []
    copies: list[str] = []
    for label, cell, reading, source in labelled:
        trial = Trial(len(runs), label, cell.name, blocks[label, cell.name], 0, Reset.NONE)
        run = LoggedRun(trial, cell, reading, source)
        digest = hashlib.sha256(reading.raw).hexdigest()
        if digest in seen:
            copies.append(f"{run.place}: the same log as {seen[digest]}; skipped")
            continue
        seen[digest] = run.place
        blocks[label, cell.name] += 1
        runs.append(run)
    return runs, copies


def outcome_of(run: LoggedRun, warmup_s: float) -> Outcome:
    """Return the outcome of a run without its first `warmup_s`, where it reported intervals."""
    reading = run.reading
    end_s = reading.intervals[-1].t_s
    window = Window(warmup_s if _outlasts(reading, warmup_s) else 0.0, end_s)
    metrics = {m.name: m for m in summarise(reading.intervals, window, reading.response)}
    if window.start_s == 0:
        totals = {k: v for k, v in reading.totals.items() if k != "seconds"}
        metrics |= {name: Metric(name, value, unit_of(name)) for name, value in totals.items()}
    series = (tens(reading.intervals, reading.response),) if reading.reported else ()
    return Outcome(
        run.trial, TrialStatus.OK, window, tuple(metrics.values()), series, reading.seconds
    )


def _outlasts(reading: ParsedRun, warmup_s: float) -> bool:
    """Return whether a run has a report after its warm-up."""
    end_s = reading.intervals[-1].t_s
    return reading.reported and Window(warmup_s, end_s).holds(end_s)


def warnings_of(runs: Sequence[LoggedRun], baseline: str, warmup_s: float) -> list[str]:
    """Return the warnings that apply to verdicts on these runs."""
    found = [_UNKNOWN]
    under = {run.cell.name for run in runs if run.trial.treatment == baseline}
    without = list(dict.fromkeys(r.cell.name for r in runs if r.cell.name not in under))
    if without:
        found.append(
            f"{baseline}, the baseline, has no run of {', '.join(without)}: nothing is compared "
            "there; import those runs separately, or choose another baseline with --baseline"
        )
    if all(run.trial.block == 0 for run in runs):
        found.append(_SINGLE)
    if warmup_s:
        found += [
            f"{run.place}: no reports after {warmup_s:g} s; its warm-up is included in the result"
            for run in runs
            if not _outlasts(run.reading, warmup_s)
        ]
    return found + [text for run in runs for text in caveats_of(run)]


def caveats_of(run: LoggedRun) -> Iterator[str]:
    """Yield the caveats of a run, each with file and line."""
    for caveat in run.reading.caveats:
        line = caveat.line if caveat.line >= 0 else run.reading.lines[-1]
        yield f"{run.source}:{line + 1}: {caveat.text}"


def baseline_of(runs: Sequence[LoggedRun]) -> str:
    """Return the label that ran under most workloads, the first of them."""
    under: dict[str, set[str]] = {}
    for run in runs:
        under.setdefault(run.trial.treatment, set()).add(run.cell.name)
    return max(under, key=lambda label: len(under[label]))


def spec_of(runs: Sequence[LoggedRun], name: str, baseline: str, warmup_s: float) -> str:
    """Return the spec of a run directory that holds these runs, as TOML."""
    labels = dict.fromkeys(run.trial.treatment for run in runs)
    cells = {run.cell.name: run.cell for run in runs}
    guards = {f"latency_{p}_s": margin for p, margin in _MARGINS.items()
              if any(f"latency_{p}_s" in run.reading.totals for run in runs)}  # fmt: skip
    guards["tps_logsd"] = 0.20
    lines = [
        "# Imported logs: they can be compared, and not run.",
        "[campaign]",
        f"name = {toml(name)}",
        f"question = {toml(f'What do {len(runs)} imported runs show?')}",
        '[stack]\nserver = "none"',
        f'[design]\nkind = "{KIND}"',
        f"[protocol]\nwarmup_s = {warmup_s!r}",
        f"[decide]\nbaseline = {toml(baseline)}",
        f"guards = {{ {', '.join(f'{k} = {v}' for k, v in guards.items())} }}",
        *(f"[treatments.{toml(label)}]" for label in labels),
    ]
    for cell in cells.values():
        table = f"workloads.{toml(cell.name)}"
        lines += [f'[{table}]\ntool = "{KIND}"\nresponse = {toml(cell.response)}', f"[{table}.is]"]
        lines += [f"{toml(key)} = {toml(value)}" for key, value in cell.traits.items()]
    return "\n".join(lines) + "\n"


@contextmanager
def drafted(path: Path) -> Iterator[RunDir]:
    """Yield a temporary run directory that is renamed to `path` on success, removed otherwise.

    Raises `CampaignError` where it cannot be written, or `path` exists by then.  Leftovers of
    killed imports are removed first.
    """
    start = f".{path.name}.importing-"
    draft = path.with_name(f"{start}{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        for left in path.parent.glob(f"{start}*"):
            if not Path("/proc", left.name.removeprefix(start)).exists():
                shutil.rmtree(left, ignore_errors=True)
        (draft / "facts").mkdir(parents=True)
        yield RunDir(draft)
        draft.rename(path)
    except OSError as error:
        reason = f"{path}: {error.strerror}; choose another directory with -o"
        raise CampaignError(reason) from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def save(files: RunDir, runs: Sequence[LoggedRun], facts: Mapping[str, str]) -> None:
    """Write the raw log of each run, and `facts`: texts by name of file."""
    for run in runs:
        (files.begin(run.trial.id) / "load.out").write_bytes(run.reading.raw)
    for name, text in facts.items():
        (files.facts / name).write_text(text, encoding="utf-8")


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
        return _clean((found[1] if found.re.groups else "") or found[0]) if found else ""


def labels(
    sources: Sequence[LogFile], cells: Sequence[Sequence[ImportedCell]], naming: Naming
) -> tuple[list[list[str]], list[str]]:
    """Return a label for each run of each source, and warnings.

    A run without a rule is labelled by its file, or by its folder where files in several folders
    would share a name; runs of one workload in one file to which the log gives different names (the
    jobs of fio) have these as part of theirs.  Others of one workload in one file are repeats of
    each other, unless there is other text between them: then they are numbered, as a setting may
    have been changed in between.
    """
    names = _names(sources)
    found: list[list[str]] = []
    warnings: list[str] = []
    for source, name, mine in zip(sources, names, cells, strict=True):
        ruled = [naming.label(source, reading.span[0]) for reading in source.log.readings]
        called = [f"{name}{job}" for job in _jobs(source, mine)]
        alike = [(cell.name, label) for cell, label in zip(mine, called, strict=True)]
        numbers = _numbers(source, alike)
        labelled = zip(ruled, called, numbers, strict=True)
        found.append([rule or _clean(f"{label}{number}") for rule, label, number in labelled])
        warnings += _doubtful(
            source, [a for a, r in zip(alike, ruled, strict=True) if not r], numbers
        )
    return found, warnings


def _jobs(source: LogFile, cells: Sequence[ImportedCell]) -> list[str]:
    """Return ``:JOB`` for runs whose workload has jobs of several names, else empty strings."""
    pairs = [(c.name, r.job) for c, r in zip(cells, source.log.readings, strict=True)]
    several = Counter(name for name, _ in set(pairs))
    return [f":{job}" if job and several[name] > 1 else "" for name, job in pairs]


def _doubtful(
    source: LogFile, alike: Sequence[tuple[str, str]], numbers: Sequence[str]
) -> Iterator[str]:
    counts = Counter(alike)
    often = [pair for pair, count in counts.items() if count > 1]
    if not often:
        return
    what = f"{source.path}: contains {counts[often[0]]} runs of {often[0][0]}"
    how = "name them with --label-line REGEX or --label NAME=FILE:FIRST-LAST"
    if any(numbers):
        yield f"{what}, with other text between them; each is a treatment of its own; {how}"
    else:
        yield f"{what}, taken as repeats of one treatment; if they are not, {how}"


def _numbers(source: LogFile, alike: Sequence[tuple[str, str]]) -> list[str]:
    """Return ``#1``, ``#2`` … for runs with other text between them, else empty strings."""
    order: Counter[tuple[str, str]] = Counter()
    numbers: list[str] = []
    for pair in alike:
        order[pair] += 1
        numbers.append(f"#{order[pair]}")
    spans = [(r.lines[0], r.lines[-1]) for r in source.log.readings]
    apart = any(spans[0][0] < n < spans[-1][1] for n in source.log.unparsed) if spans else False
    return numbers if apart and max(order.values()) > 1 else [""] * len(alike)


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
