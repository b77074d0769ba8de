"""`mydyno digest`: statements of slow logs grouped into classes, by mydyno-probe."""

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from mydyno.cli.terminal import print_message
from mydyno.model import HostError, SpecError, os_errors_as
from mydyno.sample import NOT_BUILT, probe_binary

if TYPE_CHECKING:
    from mydyno.cli.digest_tables import ReviewTable

# all options except those below are passed to mydyno-probe, --help too
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write an HTML page.")]
Review = Annotated[
    str | None,
    typer.Option("--review", metavar="D=DB,t=TABLE", help="Add the classes to this table."),
]
History = Annotated[
    str | None,
    typer.Option("--history", metavar="D=DB,t=TABLE", help="Write their figures to this table."),
]
Defaults = Annotated[
    Path | None,
    typer.Option("--server-defaults", metavar="FILE", help="Option file to log in with."),
]
Create = Annotated[bool, typer.Option("--create-tables", help="Make tables that are not there.")]

OURS = """mydyno adds:
  --html FILE             write an HTML page that needs no network; together with --json if wanted
  --review D=DB,t=TABLE   add the classes to a table as pt-query-digest keeps it
  --history D=DB,t=TABLE  write a row of figures for each class; both imply --compat pt
  --server-defaults FILE  the option file ([client]) to log in with
  --create-tables         make the tables that are not there

"""


def digest(
    context: typer.Context,
    *,
    html: Html = None,
    review: Review = None,
    history: History = None,
    server_defaults: Defaults = None,
    create_tables: Create = False,
) -> None:
    """Group the statements of slow logs into classes, with exact counts and times.

    FILE... or - for standard input; all other options are those of mydyno-probe digest.
    """
    program = probe_binary()
    if not program:
        raise HostError(NOT_BUILT)
    given = list(context.args)
    if {"-h", "--help"} & {*given}:
        sys.stdout.write(OURS)
    elif html or review is not None or history is not None:
        tables = _tables(review, history, server_defaults)
        found = _digested(program, ["--compat=pt"] * bool(tables) + given)
        if html:
            print_message(f"page: {_write(found, html)}")
        if server_defaults:
            _store(found, tables, server_defaults, create=create_tables)
        if "--json" in given:
            sys.stdout.buffer.write(found)
        return
    sys.stdout.flush()
    os.execv(program, ["mydyno", "digest", *given])  # noqa: S606 - its exit code is ours


def _digested(program: str, given: list[str]) -> bytes:
    if any(word.split("=")[0] == "--every" for word in given):
        raise SpecError("--every: not with --html, --review or --history; leave it out")
    words = [word for word in given if word != "--json"]
    argv = [program, "digest", "--json", *words]
    done = subprocess.run(argv, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise typer.Exit(done.returncode)  # it has printed the error
    return done.stdout


def _write(found: bytes, path: Path) -> Path:
    """Write the page of a digest and return its path."""
    from mydyno.report.digestpage import render_digest  # noqa: PLC0415 - not needed to pass options on

    page = render_digest(msgspec.json.decode(found, type=dict[str, object]))
    with os_errors_as(SpecError, path, "choose another file with --html"):
        path.write_text(page, encoding="utf-8")
    return path


def _tables(
    review: str | None, history: str | None, options: Path | None
) -> "dict[str, ReviewTable]":
    from mydyno.cli import digest_tables as of  # noqa: PLC0415 - not needed to pass options on

    given = (("review", review, of.REVIEW), ("history", history, of.HISTORY))
    tables = {
        kind: of.table_of(dsn, f"--{kind}", default)
        for kind, dsn, default in given
        if dsn is not None
    }
    if tables and not options:
        raise SpecError("--review, --history: name an option file with --server-defaults")
    return tables


def _store(found: bytes, tables: "dict[str, ReviewTable]", options: Path, *, create: bool) -> None:
    """Write the classes into the tables, each in one transaction."""
    from mydyno.cli.digest_tables import TableWriter  # noqa: PLC0415 - as above
    from mydyno.report.digestpage import read  # noqa: PLC0415 - as above

    digest = read(msgspec.json.decode(found, type=dict[str, object]))
    writer = TableWriter(options, create=create)
    for kind, table in tables.items():
        write = writer.write_review if kind == "review" else writer.write_history
        rows = write(table, digest)
        print_message(f"{kind}: {rows} classes written to {table}")
