"""`mydyno lab`: create, list and remove emulated disks and virtual machines."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.crash import crash_test
from mydyno.cli.terminal import Json, print_json, print_result
from mydyno.host import Local
from mydyno.lab import LabSpec, Stripe, class_names, classes, create, listing
from mydyno.lab import down as take_down
from mydyno.lab.values import HOME
from mydyno.model import SpecError
from mydyno.model.text import size_bytes
from mydyno.testbed.labs import labs, not_installed, unmanaged

lab = typer.Typer(
    help="Emulated disks and virtual machines, for manual tests.", no_args_is_help=True
)
for _kind in labs().values():
    for _command in _kind.commands:
        lab.command()(_command)


def _absent(context: typer.Context) -> None:
    """Raise `SpecError`: a command of virtual machines, whose extra is not installed."""
    raise SpecError(f"lab {context.info_name}: {not_installed('vm')}")


if "vm" not in labs():
    _anything = {"allow_extra_args": True, "ignore_unknown_options": True}
    for _name in ("boot", "build", "reboot"):
        lab.command(_name, hidden=True, context_settings=_anything)(_absent)


def _there(incomplete: str) -> list[str]:
    """Return the disks and machines that are there."""
    disks = [state.spec.lab for state in listing(Local())]
    machines = [machine.name for kind in labs().values() for machine in kind.machines()]
    return [name for name in (*disks, *machines) if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(help="Name of the disk.", autocompletion=_there)]
Class = Annotated[
    str,
    typer.Option(
        "--class",
        help="Each disk's class, of `mydyno lab classes`; else uncapped.",
        autocompletion=lambda: class_names(vm=False),
    ),
]
Vm = Annotated[
    str,
    typer.Option(
        help="The VM's class; its caps apply to all disks together.",
        autocompletion=lambda: class_names(vm=True),
    ),
]
Size = Annotated[str, typer.Option(help="The size of the device: 8G.")]
Disks = Annotated[int, typer.Option(help="Number of disks it is striped over.")]
Chunk = Annotated[str, typer.Option(help="Chunk size of the stripe: 64K.")]
Level = Annotated[
    str, typer.Option("--credits", help="Burst credits: empty, full, or a share from 0 to 1.")
]
Home = Annotated[Path, typer.Option(help="Folder of its files.")]


class LabMade(msgspec.Struct, frozen=True):
    """A lab disk that was made: its name and its block device."""

    lab: str
    device: str


class LabRow(msgspec.Struct, frozen=True):
    """A lab disk (`kind` is ``loop``) or a machine; device, size and phase are those of a disk."""

    lab: str
    kind: str
    description: str
    device: str = ""
    size_bytes: int | None = None
    phase: str = ""


@lab.command()
def up(  # noqa: PLR0913 - a command is its options
    name: Name,
    *,
    disk_class: Class = "",
    size: Size = "4G",
    disks: Disks = 1,
    chunk: Chunk = "512K",
    vm: Vm = "",
    level: Level = "empty",
    home: Home = HOME,
    json: Json = False,
) -> None:
    """Create a lab disk; it exists until `mydyno lab down`."""
    stripe = Stripe(disks, size_bytes(chunk, "--chunk"))
    bytes_ = size_bytes(size, "--size")
    spec = LabSpec(name, bytes_, disk_class, level, stripe=stripe, vm=vm)
    device = create(Local(), spec, home / name, detached=True)
    print_result(LabMade(name, device.device), lambda: f"{device.device}\n", json=json)


@lab.command("list")
def list_(*, json: Json = False) -> None:
    """List the lab disks and machines of this host."""
    states = listing(Local())
    booted = [machine for kind in labs().values() for machine in kind.machines()]
    lines = unmanaged().values()
    sys.stderr.write("".join(f"{line}\n" for line in lines))
    if json:
        rows = [
            LabRow(s.spec.lab, "loop", s.spec.description, s.device, s.spec.size, s.phase)
            for s in states
        ]
        print_json([*rows, *(LabRow(m.name, "machine", m.description) for m in booted)])
        return
    for state in states:
        gib = state.spec.size / 2**30
        sys.stdout.write(
            f"{state.spec.lab:<24} {state.device:<12} {gib:6.1f} GiB  {state.phase:<8}  "
            f"{state.spec.description}\n"
        )
    sys.stdout.write("".join(f"{each.description}\n" for each in booted))
    if not states and not booted and not lines:
        sys.stdout.write("no labs\n")


@lab.command("classes")
def classes_(*, json: Json = False) -> None:
    """List the classes of disks and VMs, with their caps and bursts."""
    sys.stdout.write(classes(json=json))


@lab.command()
def down(name: Name, *, json: Json = False) -> None:
    """Remove a lab disk or a machine, and everything on it."""
    host = Local()
    if name in (lines := unmanaged()):
        raise SpecError(lines[name])
    kinds = (k for k in labs().values() if any(m.name == name for m in k.machines()))
    kind = next(kinds, None)
    removed = (kind.remove if kind else take_down)(host, name)
    print_result(removed, lambda: "".join(f"removed {line}\n" for line in removed), json=json)


lab.command("crash-test")(crash_test)
for _each in lab.registered_commands:  # an entire summary, wrapped; typer would cut it
    _each.short_help = (_each.callback.__doc__ or "").partition("\n")[0] if _each.callback else ""
