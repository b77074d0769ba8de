"""The VM lab as mydyno uses it: the host of a campaign, and commands of ``mydyno lab``."""

import atexit
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.campaign.spec import DeviceTable, Spec
from mydyno.cli.terminal import Json, print_message, print_result
from mydyno.host import LOCAL, Local
from mydyno.lab import refuse_unknown_class
from mydyno.lab.values import HOME
from mydyno.model import Action, SpecError
from mydyno.model.text import size_bytes
from mydyno.stack.doses import credit_level, ratio
from mydyno.testbed.labs import LabKind
from mydyno_vm.boot import attach, create, down, listing, sweep
from mydyno_vm.image import build as build_image
from mydyno_vm.machine import VmHost
from mydyno_vm.values import VmSpec
from mydyno_vm.zfs import misspelt

_KERNEL = "6.1"
_MEMORY, _LEAST_MEMORY = 2 << 30, 1 << 30  # the default where a quarter of the host's is less; any
_LONGEST = 30  # characters of a campaign's name in that of its machine
# room for snapshots, and a module whose parameters may be asked for
_FIRST = (("sh", "-c", 'resize2fs "$(findmnt -no SOURCE /)"'), ("modprobe", "zfs"))
_LOOP_ONLY = (
    *("chunk", "vm", "read_latency_us", "write_latency_us", "flush_latency_us"),
    *("fill_capped", "ignores_flushes"),
)
_PLAIN = {f.name: f.default for f in msgspec.structs.fields(DeviceTable)}


def host_of(spec: Spec, place: str, report: Callable[[str], None]) -> VmHost:
    """Return the booted machine of a spec, its root filesystem grown; it is removed at exit.

    Raises `SpecError` for a table that no machine can be made of, before one is made.
    """
    machine = machine_of(spec, place)
    here = Local()
    for line in sweep(here):
        report(line)
    report(f"booting a virtual machine: {machine.disks} disks, Linux {machine.kernel}")
    vm = create(here, machine, HOME / machine.lab, report)
    atexit.register(vm.remove)
    guest = VmHost(vm)
    guest.connect()
    for argv in _FIRST:
        guest.run(Action(argv)).check()
    return guest


def machine_of(spec: Spec, place: str) -> VmSpec:
    """Return the machine that a spec asks for, named after its campaign; raise `SpecError`."""
    device = spec.stack.device
    if not isinstance(device, DeviceTable):
        raise SpecError(f'{place}: stack.device: not a table; write {{ lab = "vm", ... }}')
    if (spec.stack.host, spec.stack.load) != (LOCAL, ""):
        raise SpecError(
            f'{place}: stack.host, stack.load: remove them; lab = "vm" uses its machine'
        )
    tables = (spec.factors, *spec.bundles.values(), *spec.treatments.values())
    if wrong := misspelt(key for table in tables for key in table):
        raise SpecError(f"{place}: {wrong}")
    if loops := [name for name in _LOOP_ONLY if getattr(device, name) != _PLAIN[name]]:
        names = ", ".join(f"stack.device.{name}" for name in loops)
        raise SpecError(f'{place}: {names}: valid with lab = "loop" only; remove them')
    size = size_bytes(device.size, f"{place}: stack.device.size")
    refuse_unknown_class(device.disk_class)
    name = re.sub(r"[^A-Za-z0-9-]+", "-", spec.campaign.name).strip("-")[:_LONGEST] or "campaign"
    sized = VmSpec(name, device.disks, size, device.disk_class, device.kernel or _KERNEL)
    memory, cores = _room(device, place)
    try:
        level = ratio(credit_level(str(device.credits)))
    except SpecError as error:
        raise SpecError(
            f"{place}: stack.device.credits: {device.credits!r}: write empty, full, or a share "
            "from 0 to 1"
        ) from error
    return replace(sized, memory=memory, cores=cores, credits=level)


def _room(device: DeviceTable, place: str) -> tuple[int, int]:
    """Return the memory in bytes and the cores: what is asked for, or a quarter of the host's."""
    host_memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    memory, cores = max(_MEMORY, host_memory // 4), max(1, (os.cpu_count() or 1) // 4)
    if device.memory is not msgspec.UNSET:
        memory = size_bytes(str(device.memory), f"{place}: stack.device.memory")
    if device.cores is not msgspec.UNSET:
        cores = int(device.cores)
    if not _LEAST_MEMORY <= memory <= host_memory:
        raise SpecError(
            f"{place}: stack.device.memory: from {_LEAST_MEMORY >> 20}M to this machine's "
            f"{host_memory >> 20}M"
        )
    return memory >> 20 << 20, cores


Name = Annotated[str, typer.Argument(help="Name of the machine.")]
Disks = Annotated[int, typer.Option(help="Number of disks.")]
Size = Annotated[str, typer.Option(help="The size of each disk: 2G.")]
Class = Annotated[str, typer.Option("--class", help="Each disk's class; none means uncapped.")]
Kernel = Annotated[str, typer.Option(help="Its kernel: 6.1.")]
Another = Annotated[str, typer.Argument(help="Another kernel: 6.12.")]
Home = Annotated[Path, typer.Option(help="Folder of its files.")]
Sources = Annotated[Path | None, typer.Option(help="A file of apt sources to build from.")]


def boot(  # noqa: PLR0913 - a command is its options
    name: Name,
    *,
    disks: Disks = 1,
    size: Size = "2G",
    disk_class: Class = "",
    kernel: Kernel = _KERNEL,
    home: Home = HOME,
    json: Json = False,
) -> None:
    """Boot a virtual machine with disks; it runs until `mydyno lab down`."""
    host = Local()
    for line in sweep(host):
        print_message(line)
    spec = VmSpec(name, disks, size_bytes(size, "--size"), disk_class, kernel)
    there = create(host, spec, home / name, print_message, detached=True)
    if there.emulated:
        print_message(there.emulated)
    value = {"lab": name, "ssh": there.ssh, "disks": there.disks, "state": there.state}
    print_result(value, lambda: " ".join(("ssh", *there.ssh, name)) + "\n", json=json)


def reboot(name: Name, kernel: Another = "", *, json: Json = False) -> None:
    """Reboot a machine, with another kernel if one is named."""
    there = attach(Local(), name)
    there.reboot(kernel)
    release = there.state.release
    print_result({"lab": name, "release": release}, lambda: f"{release}\n", json=json)


def build(*, sources: Sources = None, json: Json = False) -> None:
    """Build the image of the machines, if it is missing; this takes up to an hour."""
    image = build_image(Local(), print_message, sources)
    value = {"image": str(image.folder), "kernels": image.releases}
    print_result(value, lambda: f"{image.folder}\n", json=json)


LAB = LabKind(host_of, listing, down, sweep, commands=(boot, reboot, build))
