"""Output of `mydyno import`: each run, each file, and unparsed lines."""

import json
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from mydyno.campaign.importing import LoggedRun, caveats_of
from mydyno.model import Metric
from mydyno.report.units import counted, span

_SHOWN = 3  # runs without a result that are listed one by one
_GAP = "  "


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
        lines=(reading.lines[0] + 1, reading.lines[-1] + 1),
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
            str(run.trial),
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
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    right = {0, 3, 4, 6, 7}
    lines = [
        _GAP.join(
            cell.rjust(wide) if i in right else cell.ljust(wide)
            for i, (cell, wide) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"


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


def traits_line(run: LoggedRun) -> str:
    """Return the traits of a run's workload."""
    return ", ".join(f"{key} {value}" for key, value in run.cell.traits.items())


def encoded(fields: Mapping[str, str]) -> str:
    """Return fields as indented JSON."""
    return json.dumps(fields, indent=1, ensure_ascii=False) + "\n"
