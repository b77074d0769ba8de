"""`mydyno lab`: emulated disks made, listed and removed by hand."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.campaign.quantities import size_bytes
from mydyno.cli.options import Json
from mydyno.host import Local
from mydyno.lab import LabSpec, create, listing
from mydyno.lab import down as take_down

lab = typer.Typer(help="Emulated disks, for trying things by hand.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="What to call the disk.")]
Class = Annotated[str, typer.Option("--class", help="A cloud disk's class; none means uncapped.")]
Size = Annotated[str, typer.Option(help="Its size: 8G.")]
Level = Annotated[
    str, typer.Option("--credits", help="Burst credits: empty, full, or a share from 0 to 1.")
]
Home = Annotated[Path, typer.Option(help="Where its files are kept.")]
_HOME = Path("/var/tmp/mydyno-labs")  # noqa: S108 - big files, and names are in our registry


@lab.command()
def up(
    name: Name,
    *,
    disk_class: Class = "",
    size: Size = "4G",
    level: Level = "empty",
    home: Home = _HOME,
    json: Json = False,
) -> None:
    """Make a lab disk; it stays until `mydyno lab down`."""
    spec = LabSpec(name, size_bytes(size, "--size"), disk_class, level)
    device = create(Local(), spec, home / name, detached=True)
    if json:
        sys.stdout.write(
            msgspec.json.encode({"lab": name, "device": device.device}).decode() + "\n"
        )
    else:
        sys.stdout.write(f"{device.device}\n")


@lab.command("list")
def list_(*, json: Json = False) -> None:
    """List the lab disks of this host."""
    states = listing(Local())
    if json:
        sys.stdout.write(msgspec.json.encode(states).decode() + "\n")
        return
    for state in states:
        kind = state.spec.disk_class or "uncapped"
        gib = state.spec.size / 2**30
        sys.stdout.write(
            f"{state.spec.lab:<24} {state.device:<12} {kind:<12} {gib:6.1f} GiB  {state.phase}\n"
        )
    if not states:
        sys.stdout.write("no lab disks\n")


@lab.command()
def down(name: Name, *, json: Json = False) -> None:
    """Remove a lab disk and everything on it."""
    removed = take_down(name, Local())
    if json:
        sys.stdout.write(msgspec.json.encode(removed).decode() + "\n")
        return
    for line in removed:
        sys.stdout.write(f"removed {line}\n")
