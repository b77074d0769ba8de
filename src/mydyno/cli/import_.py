"""`mydyno import`: existing benchmark logs as a run directory, to compare and report."""

import bz2
import gzip
import io
import lzma
import shlex
import shutil
import subprocess
import sys
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.campaign import importing
from mydyno.campaign.importing import LogFile, LoggedRun, Naming, caveats_of, cells_of, labels
from mydyno.campaign.treatments import Environment
from mydyno.cli.run_directory import RunFacts, reopen
from mydyno.cli.terminal import Json, command_line, print_message, print_result
from mydyno.journal import FileJournal, Finished, Opened
from mydyno.logs import read
from mydyno.model import JournalError, Metric, SpecError, unknown_value
from mydyno.report.text import aligned
from mydyno.report.units import counted, span

STDIN = "-"
_MOST = 1 << 30  # bytes of one text
_ZSTD = b"\x28\xb5\x2f\xfd"


def files(paths: Sequence[str]) -> Iterator[tuple[str, bool]]:
    """Yield each file by path, folders gone through in order, and whether a folder gave it."""
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            yield path, False
            continue
        for found in sorted(Path(path).rglob("*")):
            inside = found.relative_to(path).parts
            if found.is_file() and not any(part.startswith(".") for part in inside):
                yield str(found), True


def content(path: str) -> bytes:
    """Return the unpacked content of a file; raise `ValueError` with the reason if unreadable."""
    try:
        data = sys.stdin.buffer.read(_MOST) if path == STDIN else _read(Path(path))
        return _unpacked(data)
    except OSError as error:
        raise ValueError(error.strerror or f"damaged: {error}") from error
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"damaged: {error}") from error


def _read(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise ValueError("not a regular file")
    if path.stat().st_size > _MOST:
        raise ValueError("more than 1 GiB; cut it into parts")
    return path.read_bytes()


def _unpacked(data: bytes) -> bytes:
    if data.startswith(_ZSTD):
        return _by_zstd(data)
    kinds = ((b"\x1f\x8b", gzip.open), (b"\xfd7zXZ", lzma.open), (b"BZh", bz2.open))
    for magic, unpack in kinds:
        if data.startswith(magic):
            with unpack(io.BytesIO(data)) as stream:
                data = stream.read(_MOST + 1)
            if len(data) > _MOST:
                raise ValueError("more than 1 GiB when unpacked; cut it into parts")
    return data


def _by_zstd(data: bytes) -> bytes:
    program = shutil.which("zstd")
    if program is None:
        raise ValueError("packed by zstd, which is not installed; install zstd or unpack it")
    done = subprocess.run([program, "-dcq"], input=data, capture_output=True, check=False)
    if done.returncode:
        raise ValueError(f"damaged: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


_SHOWN = 3  # runs without a result that are listed one by one


class ImportedRun(msgspec.Struct, frozen=True):
    """One run as it was imported; `lines` are its first and its last, counted from 1."""

    trial: int
    label: str
    workload: str
    block: int
    file: str
    lines: tuple[int, int]
    seconds: float
    reports: int
    response: str
    value: float
    doubts: list[str]


class ImportedFile(msgspec.Struct, frozen=True):
    """One imported file: `strange` of its `lines` were not parsed, blank ones not counted."""

    file: str
    runs: int = 0
    lines: int = 0
    strange: int = 0
    first_strange: int | None = None
    error: str = ""
    without_result: list[str] = []
    unfounded: list[str] = []


class Imported(msgspec.Struct, frozen=True):
    """`mydyno import … --json`: what was imported into `directory`, and what was not."""

    directory: str
    baseline: str
    runs: list[ImportedRun]
    files: list[ImportedFile]
    warnings: list[str]


def of_run(run: LoggedRun, metrics: Sequence[Metric]) -> ImportedRun:
    """Return the summary of a run."""
    reading = run.reading
    return ImportedRun(
        trial=run.trial.id,
        label=run.trial.treatment,
        workload=run.cell.name,
        block=run.trial.block,
        file=run.source,
        lines=(reading.span[0] + 1, reading.span[1] + 1),
        seconds=reading.seconds,
        reports=len(reading.intervals) if reading.reported else 0,
        response=reading.response,
        value=next(m.value for m in metrics if m.name == reading.response),
        doubts=list(caveats_of(run)),
    )


def table(imported: Imported) -> str:
    """Return the runs as a table, in the order of their lines."""
    rows = [("Trial", "Workload", "Label", "Run", "Value", "", "Length", "Reports", "From")]
    rows += [
        (
            str(run.trial + 1),
            run.workload,
            run.label,
            str(run.block + 1),
            f"{run.value:,.2f}",
            run.response,
            span(run.seconds),
            str(run.reports or "-"),
            f"{run.file}:{run.lines[0]}-{run.lines[1]}",
        )
        for run in imported.runs
    ]
    return "\n".join(aligned(rows, right={0, 3, 4, 6, 7})) + "\n"


def of_files(files: Sequence[ImportedFile]) -> Iterator[str]:
    """Yield a line for each file, and for runs in it that have no result."""
    for file in files:
        yield f"{file.file}: {file_line(file)}"
        yield from file.without_result[:_SHOWN]
        if len(file.without_result) > _SHOWN:
            yield f"{file.file}: and {len(file.without_result) - _SHOWN} more without a result"


def file_line(file: ImportedFile) -> str:
    """Return the summary of a file."""
    if file.error:
        return f"not read: {file.error}"
    runs = counted(file.runs, "run") if file.runs else "no run"
    if not file.strange:
        return f"{runs}; all lines were parsed"
    first = f", the first is line {file.first_strange}"
    return f"{runs}; {file.strange} of {file.lines} lines were not parsed{first}"


@dataclass(slots=True)
class _Found:
    """The logs that were read, and the summary of each file."""

    sources: list[LogFile] = field(default_factory=list)
    files: list[ImportedFile] = field(default_factory=list)


Paths = Annotated[
    list[str], typer.Argument(metavar="PATH", help="Logs, folders of logs, or - for stdin.")
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="A new run directory.")]
Label = Annotated[
    list[str] | None,
    typer.Option("--label", metavar="NAME[=PATTERN]", help="Label runs of matching files NAME; "
                 "PATTERN:10-90 limits it to those lines. The first matching rule applies."),
]  # fmt: skip
LabelLine = Annotated[
    str | None,
    typer.Option(metavar="REGEX", help="Label a run by the last matching line above it: "
                 "its first group, or the match."),
]  # fmt: skip
Baseline = Annotated[str | None, typer.Option(metavar="NAME", help="The label to compare with.")]
Warmup = Annotated[
    float, typer.Option("--warmup", min=0.0, metavar="SECONDS", help="Leave out the first SECONDS "
                        "of each run that has interval reports.")
]  # fmt: skip


def import_(  # noqa: PLR0913 - one parameter for each option
    paths: Paths,
    *,
    output: Output,
    label: Label = None,
    label_line: LabelLine = None,
    baseline: Baseline = None,
    warmup: Warmup = 0.0,
    json: Json = False,
) -> None:
    """Import existing benchmark logs into a run directory, to compare and report.

    sysbench (0.4 to 1.1), fio (text, JSON, terse) and mysqlslap, also within other text or behind
    a logger's times and names, several in a file, packed by gzip, xz, bzip2 or zstd.
    """
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise JournalError(f"{output}: not empty; choose a new directory with -o")
    found = _read_logs(paths)
    runs, warnings = _runs(found, Naming.of(label or [], label_line))
    control = _control(runs, baseline)
    warnings += importing.warnings_of(runs, control, warmup)
    warnings += [line for file in found.files for line in file.unfounded]
    imported = _write(output, found, runs, warnings, control, warmup)
    print_result(imported, lambda: table(imported), json=json)
    for line in (*of_files(imported.files), *(f"warning: {w}" for w in imported.warnings)):
        print_message(line)
    print_message(f"next: mydyno compare {shlex.quote(str(output))}")
    if any(file.error for file in imported.files):
        raise typer.Exit(1)


def _read_logs(paths: Sequence[str]) -> _Found:
    found = _Found()
    for path, in_folder in files(paths):
        try:
            log = read(content(path))
        except ValueError as problem:
            found.files.append(ImportedFile(path, error=str(problem)))
            continue
        if log.readings:
            found.sources.append(LogFile(path, in_folder, log))
        found.files.append(
            ImportedFile(
                file=path,
                runs=len(log.readings),
                lines=log.lines,
                strange=len(log.unparsed),
                first_strange=log.unparsed[0] + 1 if log.unparsed else None,
                without_result=[f"{path}:{d.line + 1}: {d.text}" for d in log.rejected],
                unfounded=[f"{path}:{d.line + 1}: {d.text}" for d in log.unsupported],
            )
        )
    return found


def _runs(found: _Found, naming: Naming) -> tuple[list[importing.LoggedRun], list[str]]:
    """Return the runs and warnings about them; raise `SpecError` if there are none."""
    readings = [reading for source in found.sources for reading in source.log.readings]
    if not readings:
        for line in of_files(found.files):
            print_message(line)
        raise SpecError("no run found in these files; known tools: sysbench, fio and mysqlslap")
    rest = iter(cells_of(readings))
    cells = [[next(rest) for _ in source.log.readings] for source in found.sources]
    named, warnings = labels(found.sources, cells, naming)
    labelled = [
        (label, cell, reading, source.path)
        for source, mine, names in zip(found.sources, cells, named, strict=True)
        for label, cell, reading in zip(names, mine, source.log.readings, strict=True)
    ]
    runs, copies = importing.runs_of(labelled)
    return runs, [*warnings, *copies]


def _control(runs: Sequence[importing.LoggedRun], asked: str | None) -> str:
    """Return the label that the others are compared with; raise `SpecError` for an unknown one."""
    names = dict.fromkeys(run.trial.treatment for run in runs)
    if asked is not None and asked not in names:
        raise SpecError(f"--baseline {asked}: {unknown_value(asked, names)}")
    return asked or importing.baseline_of(runs)


def _write(
    output: Path,
    found: _Found,
    runs: Sequence[importing.LoggedRun],
    warnings: list[str],
    control: str,
    warmup_s: float,
) -> Imported:
    """Write the run directory: complete, or not at all."""
    run_facts = RunFacts("spec.toml", {}, Environment(0, 0), command_line())
    traits = {r.cell.name: ", ".join(f"{k} {v}" for k, v in r.cell.traits.items()) for r in runs}
    tables = {
        importing.FILES: {f.file: file_line(f) for f in found.files},
        "imported runs.json": {f"trial {r.trial.id + 1}": r.place for r in runs},
        "workloads.json": traits,
    }
    facts = {
        "campaign.json": msgspec.json.encode(run_facts).decode(),
        "warnings.txt": "\n".join(warnings),
        **{name: f"{dumps(of, indent=1, ensure_ascii=False)}\n" for name, of in tables.items()},
    }
    outcomes = [importing.outcome_of(run, warmup_s) for run in runs]
    name = output.resolve().name
    with importing.drafted(output.resolve()) as files_:
        importing.save(files_, runs, facts)
        files_.spec.write_text(importing.spec_of(runs, name, control, warmup_s), encoding="utf-8")
        journal = FileJournal(files_.journal)
        journal.append(Opened(reopen(files_.path)[0].digest, name, "imported logs"))
        for outcome in outcomes:
            journal.append(Finished(outcome))
        journal.close()
    summaries = [of_run(r, o.metrics) for r, o in zip(runs, outcomes, strict=True)]
    return Imported(str(output), control, summaries, found.files, warnings)
