"""`mydyno report`: the campaign as one offline HTML file."""

import os
import secrets
from pathlib import Path
from typing import Annotated

import typer

from mydyno.cli.analysis import result
from mydyno.cli.terminal import Dir, Json, print_json, print_message
from mydyno.host import Local
from mydyno.host.files import distrust, resolved
from mydyno.model import JournalError, RefusedError, os_errors_as
from mydyno.report.html import render_html

Output = Annotated[Path | None, typer.Option("-o", "--output", help="Where to write the report.")]


def report(directory: Dir, *, output: Output = None, json: Json = False) -> None:
    """Write DIR/report.html: the verdict first, then the data it is based on."""
    if json:
        print_json(result(directory))
    else:
        print_message(f"report: {write(directory, output)}")


def write(directory: Path, output: Path | None = None) -> Path:
    """Write the report of a run directory and return its path.

    Raises `RefusedError` where root would write into a directory that another user can change.
    """
    path = output or directory / "report.html"
    here = Local()
    asked = output is not None or os.geteuid() != 0
    if problem := "" if asked else distrust(here, resolved(here, directory)):
        raise RefusedError(
            f"{path}: refusing to write there as root: {problem}; choose another file with -o"
        )
    page = render_html(result(directory))
    with os_errors_as(JournalError, path, "choose another file with -o"):
        _replace(path, page)
    return path


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
