"""`mydyno verify`: whether what was exported is stored on a host, and in force there."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.audit import Options, gathered
from mydyno.cli.terminal import HostOption, Json, folders, print_json, width
from mydyno.host import LOCAL, reach
from mydyno.keep.drift import HostFiles, drift, paths
from mydyno.keep.kept import KEPT, Kept
from mydyno.model import SpecError
from mydyno.report.drift import render_drift
from mydyno.server.existing import reached, texts_of

DRIFT = 1  # exit code where something is not as it was kept

Folder = Annotated[
    Path,
    typer.Argument(metavar="DIR", help="A folder of mydyno export.", autocompletion=folders),
]


def verify(
    directory: Folder, *, host: HostOption = LOCAL, server: Options = "", json: Json = False
) -> None:
    """Compare what was exported with what a host stores and has in force."""
    kept = _read(directory)
    there = reach(host)
    existing = reached(there, server)
    if existing.process is None:
        raise SpecError(
            f"{server}: the server runs on another machine; name that with --host ssh://USER@HOST"
        )
    seen = gathered(existing, 0)
    rows = drift(kept, seen, HostFiles(texts_of(there, paths(kept))))
    if json:
        print_json(rows)
    else:
        sys.stdout.write(render_drift(seen.name, rows, width()))
    if any(row.state != "kept" for row in rows):
        raise typer.Exit(DRIFT)


def _read(directory: Path) -> Kept:
    path = directory / KEPT
    try:
        return msgspec.json.decode(path.read_bytes(), type=Kept)
    except OSError as error:
        raise SpecError(
            f"{path}: {error.strerror}; name a folder that mydyno export wrote"
        ) from error
    except msgspec.DecodeError as error:
        raise SpecError(f"{path}: cannot be read: {error}; export it again") from error
