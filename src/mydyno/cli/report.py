"""`mydyno report`: the campaign as one offline HTML file."""

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from mydyno.cli.machine import machine
from mydyno.cli.run_directory import losses_of, opened, result
from mydyno.cli.terminal import Json, print_json, print_message
from mydyno.cli.why import read_diagnoses
from mydyno.diagnose import Diagnosis
from mydyno.host import Local
from mydyno.host.files import problem_for_root
from mydyno.model import JournalError, RefusedError, SpecError, os_errors_as
from mydyno.report.html import render_html
from mydyno.report.limits import sentence
from mydyno.report.machine import render_machine
from mydyno.report.redact import redacted
from mydyno.stats.result import Result

Output = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write the report.")]


Subject = Annotated[
    Path,
    typer.Argument(help="A run directory, or a file of mydyno-probe sample.", metavar="DIR|FILE"),
]


WithNames = Annotated[
    bool,
    typer.Option(
        "--with-names",
        help="Show names of hosts and users, paths, addresses and literals of statements.",
    ),
]


def report(
    directory: Subject, *, output: Output = None, with_names: WithNames = False, json: Json = False
) -> None:
    """Write DIR/report.html: the verdict first, then the data it is based on."""
    if json and (output or with_names):
        raise SpecError("--json prints the data as they are, to stdout; leave out -o, --with-names")
    if directory.is_file():
        _machine(directory, output, with_names=with_names, json=json)
    elif json:
        print_json(result(directory))
    else:
        print_message(f"report: {write(directory, output, with_names=with_names)}")


def _machine(path: Path, output: Path | None, *, with_names: bool, json: bool) -> None:
    """Write the page of a sampler's file beside it, or print its figures."""
    found, curves = machine(path)
    if json:
        print_json(found)
        return
    found = found if with_names else redacted(found, [found.host])
    page = output or path.with_name(f"{path.stem}.html")
    _refuse(page, asked=output is not None)
    _place(page, render_machine(found, curves))
    print_message(f"report: {page}")


def write(directory: Path, output: Path | None = None, *, with_names: bool = False) -> Path:
    """Write the report of a run directory and return its path.

    Raises `RefusedError` where root would write into a directory that another user can change.
    """
    path = output or directory / "report.html"
    _refuse(path, asked=output is not None)
    run = opened(directory)
    limits = read_diagnoses(directory, run, lambda _: None)  # `result` warns of the same
    shown = _diagnosed(result(directory, run), limits)
    _place(path, render_html(shown, limits, losses_of(directory, run), names=with_names))
    return path


def _diagnosed(found: Result, limits: Sequence[Diagnosis]) -> Result:
    """Return the result of a diagnosis with its answer, instead of a verdict on its doses."""
    answers = [sentence(one) for one in limits if one.dosed]
    if not answers:
        return found
    compared = replace(
        found.comparison,
        sentence=" ".join(answers),
        winner=None,
        winners=dict.fromkeys(found.comparison.winners),
        treatments=[r for r in found.comparison.treatments if r.name == found.comparison.baseline],
        conclusion=[],
        findings=[f for f in found.comparison.findings if f.code == "recorded"],
        warnings=[],
    )
    return replace(found, comparison=compared)


def _refuse(path: Path, *, asked: bool) -> None:
    """Raise `RefusedError` where root would write beside another user, unless that was `asked`."""
    if problem := "" if asked else problem_for_root(Local(), path.parent):
        raise RefusedError(
            f"{path}: refusing to write there as root: {problem}; choose another file with -o"
        )


def _place(path: Path, page: str) -> None:
    with os_errors_as(JournalError, path, "choose another file with -o"):
        _replace(path, page)


def _replace(path: Path, text: str) -> None:
    """Write a new file and give it this name; an existing link is replaced, not followed."""
    if path.exists() and not path.is_file():  # a device or a pipe
        path.write_text(text, encoding="utf-8")
        return
    new = path.with_name(f".{path.name}-{secrets.token_hex(8)}")
    try:
        with new.open("x", encoding="utf-8") as file:
            file.write(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
