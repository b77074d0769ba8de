"""The hosts of a campaign, from its spec; the machine of a VM lab is booted."""

import atexit
import re

import msgspec

from mydyno.campaign.quantities import size_bytes
from mydyno.campaign.spec import DeviceTable, Spec, StackTable
from mydyno.campaign.testbed.bench_setup import Hosts
from mydyno.cli.machines import HOME
from mydyno.cli.terminal import print_message
from mydyno.host import LOCAL, Host, Local, Remote, reach
from mydyno.lab.vm import VmHost, VmSpec, create, sweep
from mydyno.model import Action, SpecError
from mydyno.stack.known.zfs import misspelt

FIRST_KERNEL = "6.1"
_NAME = 30
# room for golden copies, and a module whose parameters may be asked for
_FIRST = (("sh", "-c", 'resize2fs "$(findmnt -no SOURCE /)"'), ("modprobe", "zfs"))
_LOOP_ONLY = ("chunk", "vm", "credits", "read_latency_us", "write_latency_us", "flush_latency_us")
_PLAIN = {f.name: f.default for f in msgspec.structs.fields(DeviceTable)}


def bench_hosts(spec: Spec, place: str) -> Hosts:
    """Return the hosts of a spec; a virtual machine of its lab is booted, and removed at exit."""
    device = spec.stack.device
    if not isinstance(device, DeviceTable) or not device.machine:
        return hosts_of(spec.stack, place)
    if (spec.stack.host, spec.stack.load) != (LOCAL, ""):
        raise SpecError(
            f'{place}: stack.host, stack.load: remove them; lab = "vm" uses its machine'
        )
    tables = (spec.factors, *spec.bundles.values(), *spec.treatments.values())
    if wrong := misspelt(key for table in tables for key in table):
        raise SpecError(f"{place}: {wrong}")
    guest = _booted(_machine(device, spec.campaign.name, place))
    return Hosts(guest, guest)


def _machine(device: DeviceTable, campaign: str, place: str) -> VmSpec:
    """Return the machine that a device table asks for, named after its campaign."""
    if wrong := [name for name in _LOOP_ONLY if getattr(device, name) != _PLAIN[name]]:
        names = ", ".join(f"stack.device.{name}" for name in wrong)
        raise SpecError(f'{place}: {names}: valid with lab = "loop" only; remove them')
    size = size_bytes(device.size, f"{place}: stack.device.size")
    name = re.sub(r"[^A-Za-z0-9-]+", "-", campaign).strip("-")[:_NAME] or "campaign"
    return VmSpec(name, device.disks, size, device.disk_class, device.kernel or FIRST_KERNEL)


def _booted(spec: VmSpec) -> VmHost:
    """Return a booted machine, its root filesystem grown; it is removed at exit."""
    here = Local()
    for line in sweep(here):
        print_message(line)
    print_message(f"booting a virtual machine: {spec.disks} disks, Linux {spec.kernel}")
    vm = create(here, spec, HOME / spec.lab, print_message)
    atexit.register(vm.remove)
    guest = VmHost(vm)
    guest.connect()
    for argv in _FIRST:
        guest.run(Action(argv)).check()
    return guest


def hosts_of(stack: StackTable, place: str) -> Hosts:
    """Return the hosts that ``[stack]`` names; raise `SpecError` for an invalid one.

    A load on another host connects to the server at `address`, by default the address by which
    one host reaches the other.
    """
    try:
        db = reach(stack.host)
        same = stack.load in {"", stack.host}
        load = db if same else reach(stack.load)
    except SpecError as error:
        raise SpecError(f"{place}: stack.host or stack.load: {error}") from error
    if same and stack.address:
        raise SpecError(
            f"{place}: stack.address: needs a load on another host; set stack.load, or remove it"
        )
    return Hosts(db, load, "" if same else stack.address or _between(db, load, place))


def _between(db: Host, load: Host, place: str) -> str:
    """Return the server's address as the load host should see it."""
    found = ""
    if isinstance(db, Remote):
        found = db.addresses()[1]
    elif isinstance(load, Remote):
        found = load.addresses()[0]
    if not found:
        raise SpecError(
            f"{place}: stack.address is missing; set the server's address for the load host"
        )
    return found
