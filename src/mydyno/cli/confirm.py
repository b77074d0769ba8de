"""`mydyno confirm`: what is on trial on a host stays."""

from typing import Annotated

import msgspec
import typer

from mydyno.cli.leases import LeaseHost, call, open_lease, who
from mydyno.cli.terminal import Json, print_result
from mydyno.model import SpecError
from mydyno.model.text import duration_s
from mydyno.report import units

Extend = Annotated[
    str,
    typer.Option("--extend", metavar="TIME", help="Not yet: the trial ends that long from now."),
]


class Confirmed(msgspec.Struct, frozen=True):
    """What `confirm --json` prints: the lease, its host, its state, and the files written."""

    lease: str
    host: str
    state: str
    files: list[str]


def confirm(host: LeaseHost, *, extend: Extend = "", json: Json = False) -> None:
    """Keep what is on trial on a host: it is written to the host's own files."""
    there, held = open_lease(host)  # a new connection: the way in still works
    lease = held.lease
    if extend:
        seconds = duration_s(extend, "--extend")
        if seconds < 1:
            raise SpecError(f"--extend {extend}: write 30m, 2h, up to 7d")
        call(there, "extend", lease.id, str(round(seconds)))
        text = f"{lease.host}: on trial; it ends in {units.duration(seconds)}\n"
    else:
        call(there, "confirm", lease.id, "--who", who())
        places = "".join(f"  {change.place}\n" for change in lease.stored)
        text = f"{lease.host}: kept\n{places}next: mydyno verify {host}, mydyno rollback {host}\n"
    files = [] if extend else [change.place for change in lease.stored]
    done = Confirmed(lease.id, lease.host, "trial" if extend else "kept", files)
    print_result(done, lambda: text, json=json)
