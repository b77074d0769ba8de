"""`mydyno digest`: statements of slow logs grouped into classes, by mydyno-probe."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.terminal import print_message
from mydyno.model import HostError, SpecError, os_errors_as
from mydyno.sample import NOT_BUILT, probe_binary

# all options except --html are passed to mydyno-probe, --help too
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML page.")]


def digest(context: typer.Context, *, html: Html = None) -> None:
    """Group the statements of slow logs into classes, with exact counts and times.

    FILE... or - for standard input; all options but --html are those of mydyno-probe digest.
    """
    program = probe_binary()
    if not program:
        raise HostError(NOT_BUILT)
    given = list(context.args)
    if html is None:
        sys.stdout.flush()
        if {"-h", "--help"} & {*given}:
            sys.stdout.write(
                "mydyno adds: --html FILE  write an HTML page that needs no network\n\n"
            )
            sys.stdout.flush()
        os.execv(program, ["mydyno", "digest", *given])  # noqa: S606 - its exit code is ours
    print_message(f"page: {_write(program, [a for a in given if a != '--json'], html)}")


def _write(program: str, given: list[str], path: Path) -> Path:
    """Write the page of a digest and return its path."""
    from mydyno.report.digestpage import render_digest  # noqa: PLC0415 - not needed to pass options on

    done = subprocess.run(
        [program, "digest", "--json", *given], stdout=subprocess.PIPE, check=False
    )
    if done.returncode:
        raise typer.Exit(done.returncode)  # it has printed the error
    found = msgspec.json.decode(done.stdout, type=dict[str, object])
    page = render_digest(found)
    with os_errors_as(SpecError, path, "choose another file with --html"):
        path.write_text(page, encoding="utf-8")
    return path
