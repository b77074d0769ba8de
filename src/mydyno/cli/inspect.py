"""`mydyno inspect`: facts of a host, its servers and tools, and what is missing."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.live import live as watch
from mydyno.cli.options import HostOption, Json
from mydyno.cli.terminal import print_message
from mydyno.host import LOCAL, Host, reach
from mydyno.lab import available
from mydyno.model import Action, SpecError
from mydyno.sample import facts
from mydyno.server import find
from mydyno.testbed.lock import open_campaigns

_TOOLS = ("sysbench", "fio", "mkfs.xfs", "mkfs.btrfs", "setpriv", "losetup", "findmnt")


Live = Annotated[bool, typer.Option("--live", help="Show its load, each second.")]
Count = Annotated[int | None, typer.Option(help="With --live: end after so many seconds.", min=1)]
Server = Annotated[
    Path | None,
    typer.Option(
        "--server-defaults",
        metavar="FILE",
        help="With --live: also sample a server, with [client] of this option file.",
    ),
]


def inspect(
    *,
    host: HostOption = LOCAL,
    live: Live = False,
    count: Count = None,
    server: Server = None,
    json: Json = False,
) -> None:
    """Show a host: hardware, kernel, servers and tools."""
    if live:
        return watch(reach(host), count=count, server=server, json=json)
    if count or server:
        raise SpecError("--count and --server-defaults need --live; add it")
    there = reach(host)
    for line in open_campaigns(there, host):
        print_message(f"warning: {line}")
    return _inventory(there, json=json)


def _inventory(host: Host, *, json: bool) -> None:
    known = facts(host)
    found = {
        "host": dict(known.details),
        "disks": {"I/O schedulers": ", ".join(known.schedulers) or "none found"},
        "server": {"found": _server(host)},
        "lab disks": {"loop": available(host) or "available"},
        "tools": {tool: _where(host, tool) for tool in _TOOLS},
    }
    if json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    for section, rows in found.items():
        sys.stdout.write(f"{section}\n")
        for name, value in rows.items():
            sys.stdout.write(f"  {name:<24} {value}\n")


def _server(host: Host) -> str:
    try:
        build = find(host, "auto")
    except SpecError as error:
        return str(error)
    return f"{build.text} ({build.mysqld})"


def _where(host: Host, tool: str) -> str:
    done = host.run(Action(("find", *_folders(tool), "-maxdepth", "0")))
    return (done.stdout.decode().split() or ["missing"])[0]


def _folders(tool: str) -> list[str]:
    return [f"/{folder}/{tool}" for folder in ("usr/local/bin", "usr/bin", "usr/sbin", "sbin")]
