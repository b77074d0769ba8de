"""`mydyno verify`: whether what was exported is stored on a host, and in force there."""

from pathlib import Path
from typing import Annotated

import typer

from mydyno.cli.audit import Options, gathered
from mydyno.cli.export import read_export
from mydyno.cli.leases import leases_of, on_top
from mydyno.cli.terminal import HostOption, Json, folders, print_result, width
from mydyno.host import LOCAL, named, reach
from mydyno.keep.drift import HostFiles, drift, paths
from mydyno.keep.kept import Kept
from mydyno.model import SpecError
from mydyno.report.drift import render_drift
from mydyno.server.existing import Existing, environment_of, reached, texts_of

DRIFT = 1  # exit code where something is not as it was kept

Folder = Annotated[
    str,
    typer.Argument(
        metavar="DIR|HOST",
        help="A folder of mydyno export; or a host, for the settings that leases keep there.",
        autocompletion=folders,
    ),
]


def verify(
    directory: Folder, *, host: HostOption = LOCAL, server: Options = "", json: Json = False
) -> None:
    """Compare what was exported or applied with what a host stores and has in force."""
    of_leases = named(directory)
    if of_leases and host != LOCAL:
        raise SpecError(f"--host: {directory} is a host; leave --host out")
    there = reach(directory if of_leases else host)
    exported = None if of_leases else read_export(Path(directory))
    existing = reached(there, server)
    kept = exported or _kept(existing)
    if existing.process is None:
        raise SpecError(
            f"{server}: the server runs on another machine; name that with --host ssh://USER@HOST"
        )
    seen = gathered(existing, 0)
    own = environment_of(there, existing.process.pid)
    rows = drift(kept, seen, HostFiles(texts_of(there, paths(kept)), own))
    print_result(rows, lambda: render_drift(seen.name, rows, width()), json=json)
    if any(row.state != "kept" for row in rows):
        raise typer.Exit(DRIFT)


def _kept(existing: Existing) -> Kept:
    """Return what leases keep on a host; raise `SpecError` where that is nothing."""
    note = on_top(leases_of(existing.host))
    if not note.all:
        raise SpecError(
            f"{existing.host.name}: no lease keeps anything there; name a folder of mydyno export, "
            "or see mydyno status"
        )
    return Kept(note.all, [], {}, existing.flavour, existing.version, note.target)
