"""`mydyno report`: the campaign as one offline HTML file."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.analysis import result
from mydyno.cli.options import Dir, Json
from mydyno.cli.terminal import say
from mydyno.model import JournalError
from mydyno.report.html import render_html

Output = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write the report.")]


def report(directory: Dir, *, output: Output = None, json: Json = False) -> None:
    """Write DIR/report.html: the verdict first, then everything it rests on."""
    if json:
        sys.stdout.write(msgspec.json.encode(result(directory)).decode() + "\n")
        return
    path = write(directory, output)
    say(f"report: {path}")


def write(directory: Path, output: Path | None = None) -> Path:
    """Write the report of a run directory and return its path."""
    path = output or directory / "report.html"
    page = render_html(result(directory))
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}; choose another file with -o") from error
    return path
