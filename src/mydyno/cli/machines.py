"""The commands of `mydyno lab` for virtual machines: build the image, boot and reboot."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.terminal import Json
from mydyno.host import Local
from mydyno.lab.vm import VmSpec, VmState, attach, create, down, listing, sweep
from mydyno.lab.vm import build as build_image
from mydyno.model.text import size_bytes

__all__ = ["add", "description", "down", "known", "listing"]

Name = Annotated[str, typer.Argument(help="Name of the machine.")]
Disks = Annotated[int, typer.Option(help="Number of disks.")]
Size = Annotated[str, typer.Option(help="The size of each disk: 2G.")]
Class = Annotated[str, typer.Option("--class", help="Each disk's class; none means uncapped.")]
Kernel = Annotated[str, typer.Option(help="Its kernel: 6.1.")]
Another = Annotated[str, typer.Argument(help="Another kernel: 6.12.")]
Home = Annotated[Path, typer.Option(help="Folder of its files.")]
Sources = Annotated[Path | None, typer.Option(help="A file of apt sources to build from.")]
HOME = Path("/var/tmp/mydyno-labs")  # noqa: S108 - big files, and names are in our registry


def add(lab: typer.Typer) -> None:
    """Add the commands of this file to `mydyno lab`."""
    for command in (boot, reboot, build):
        lab.command()(command)


def boot(  # noqa: PLR0913 - a command is its options
    name: Name,
    *,
    disks: Disks = 1,
    size: Size = "2G",
    disk_class: Class = "",
    kernel: Kernel = "6.1",
    home: Home = HOME,
    json: Json = False,
) -> None:
    """Boot a virtual machine with disks; it runs until `mydyno lab down`."""
    host = Local()
    for line in sweep(host):
        _print_message(line)
    spec = VmSpec(name, disks, size_bytes(size, "--size"), disk_class, kernel)
    there = create(host, spec, home / name, _print_message, detached=True)
    if there.emulated:
        _print_message(there.emulated)
    value = {"lab": name, "ssh": there.ssh, "disks": there.disks, "state": there.state}
    _print_result(value, " ".join(("ssh", *there.ssh, name)), json=json)


def reboot(name: Name, kernel: Another = "", *, json: Json = False) -> None:
    """Reboot a machine, with another kernel if one is named."""
    there = attach(Local(), name)
    there.reboot(kernel)
    _print_result({"lab": name, "release": there.state.release}, there.state.release, json=json)


def build(*, sources: Sources = None, json: Json = False) -> None:
    """Build the image of the machines, if it is missing; this takes some minutes."""
    image = build_image(Local(), _print_message, sources)
    value = {"image": str(image.folder), "kernels": image.releases}
    _print_result(value, str(image.folder), json=json)


def known(name: str) -> bool:
    """Return whether a machine has this name."""
    return any(state.spec.lab == name for state in listing())


def description(state: VmState) -> str:
    """Return a description of a machine in one line."""
    system = f"Linux {state.release}"
    disks = f"{state.spec.disks} disks"
    return f"{state.spec.lab:<24} {system:<34} {state.accelerator}  {disks}  {state.phase}"


def _print_result(value: object, words: str, *, json: bool) -> None:
    sys.stdout.write((msgspec.json.encode(value).decode() if json else words) + "\n")


def _print_message(text: str) -> None:
    sys.stderr.write(f"{text}\n")
