"""`mydyno import`: existing benchmark logs as a run directory, to compare and report."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.campaign import importing
from mydyno.campaign.labels import LogFile, Naming, labels
from mydyno.campaign.past import cells_of
from mydyno.campaign.treatments import Environment
from mydyno.cli.imported import (
    Imported,
    ImportedFile,
    encoded,
    file_line,
    of_files,
    of_run,
    table,
    traits_line,
)
from mydyno.cli.logfiles import content, files
from mydyno.cli.options import Json
from mydyno.cli.specs import RunFacts, reopen
from mydyno.cli.terminal import print_message
from mydyno.journal import FileJournal, Finished, Opened
from mydyno.model import JournalError, SpecError, unknown_value
from mydyno.workloads.foreign import read


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

    sysbench (0.4 to 1.1, files and statements), fio (text and JSON) and mysqlslap, also within
    other text, several in a file, packed by gzip, xz, bzip2 or zstd.
    """
    if output.exists() and not (output.is_dir() and not any(output.iterdir())):
        raise JournalError(f"{output}: not empty; choose a new directory with -o")
    found = _read(paths)
    runs, warnings = _runs(found, Naming.of(label or [], label_line))
    control = _control(runs, baseline)
    warnings += importing.warnings_of(runs, control, warmup)
    warnings += [line for file in found.files for line in file.unfounded]
    imported = _write(output, (found, runs, warnings), control, warmup)
    sys.stdout.write(msgspec.json.encode(imported).decode() + "\n" if json else table(imported))
    for line in (*of_files(imported.files), *(f"warning: {w}" for w in imported.warnings)):
        print_message(line)
    print_message(f"next: mydyno compare {shlex.quote(str(output))}")
    if any(file.error for file in imported.files):
        raise typer.Exit(1)


def _read(paths: Sequence[str]) -> _Found:
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
    what: tuple[_Found, Sequence[importing.LoggedRun], list[str]],
    control: str,
    warmup_s: float,
) -> Imported:
    """Write the run directory: complete, or not at all."""
    found, runs, warnings = what
    command = shlex.join(["mydyno", *sys.argv[1:]])
    run_facts = RunFacts("spec.toml", {}, Environment(0, 0), command)
    facts = {
        "campaign.json": msgspec.json.encode(run_facts).decode(),
        importing.FILES: encoded({f.file: file_line(f) for f in found.files}),
        "imported runs.json": encoded({f"trial {r.trial.id}": r.place for r in runs}),
        "workloads.json": encoded({r.cell.name: traits_line(r) for r in runs}),
        "warnings.txt": "\n".join(warnings),
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
