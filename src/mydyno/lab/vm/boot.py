"""Virtual machines: creating, finding and removing them, also for dead owners."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mydyno.host import Host, processes
from mydyno.host.trusted import make_home, resolved
from mydyno.lab.registry import clear_parts
from mydyno.lab.vm import qemu_process, seed
from mydyno.lab.vm.accel import accelerator
from mydyno.lab.vm.image import Image, build, refuse_lacking
from mydyno.lab.vm.machine import Vm
from mydyno.lab.vm.throttles import throttle
from mydyno.lab.vm.values import VmPaths, VmSpec, VmState, check
from mydyno.lab.vm.vm_registry import Records, records
from mydyno.model import Action, RefusedError, SpecError
from mydyno.server.ports import free_port


def create(
    host: Host, spec: VmSpec, home: Path, say: Callable[[str], None], *, detached: bool = False
) -> Vm:
    """Return a new machine that answers, its files in `home`, a folder of its own.

    The image is built first where there is none.  `detached`: it outlives this process, until
    `down`.  Raise `SpecError` for an invalid machine, `RefusedError` where none can be made or
    the name is in use, `HostError` if it does not boot.
    """
    check(spec)
    refuse_lacking(host)
    caps = throttle(host, spec.disk_class) if spec.disk_class else spec.throttle
    image = build(host, say)
    kernel = image.kernel(spec.kernel)
    kept = records()
    _clear(host, kept, spec.lab)
    found = accelerator(host, image, kept.folder.parent / "accelerator")
    us = processes.identify(host, os.getpid())
    throttled = replace(spec, throttle=caps)
    where, port = str(resolved(host, home.absolute())), free_port(host)
    folder, release = str(image.folder), kernel.release
    state = VmState(throttled, where, folder, "starting", found, port, release, us)
    state = _with_home(host, kept, state)
    return _bring_up(host, kept, replace(state, owner=None if detached else us), image)


def attach(host: Host, lab: str) -> Vm:
    """Return a machine that is up; raise `SpecError` if there is none of that name."""
    kept = records()
    state = kept.read(lab)
    if state is None:
        known = ", ".join(s.spec.lab for s in kept.all()) or "none"
        raise SpecError(f"lab {lab}: does not exist on {host.name}; known: {known}")
    return Vm(host, kept, state)


def listing() -> Sequence[VmState]:
    """Return the machines, by name."""
    return records().all()


def sweep(host: Host) -> Sequence[str]:
    """Remove machines of dead owners; return a line for each.

    Can be run at any time, by anyone.
    """
    kept = records()
    clear_parts(kept.folder)
    orphans = [state for state in kept.all() if _orphaned(host, state)]
    return tuple(
        f"lab {state.spec.lab}: leftover; removed "
        f"{', '.join(qemu_process.tear_down(host, kept, state))}"
        for state in orphans
    )


def down(host: Host, lab: str) -> Sequence[str]:
    """Remove a machine and all it wrote; return what was removed.

    Raise `SpecError` if there is none of that name, `RefusedError` if another process uses it.
    """
    vm = attach(host, lab)
    owner = vm.state.owner
    if owner is not None and owner.pid != os.getpid() and processes.alive(host, owner):
        raise RefusedError(f"lab {lab}: in use by process {owner.pid}; end that first")
    return vm.remove()


def _orphaned(host: Host, state: VmState) -> bool:
    """Return whether its owner is dead, or, if it is detached, its QEMU."""
    if state.owner is not None or state.phase != "up":
        return not processes.alive(host, state.owner)
    return not qemu_process.alive(host, VmPaths(Path(state.home)), state.qemu)


def _clear(host: Host, kept: Records, lab: str) -> None:
    """Remove a leftover machine of this name; raise `RefusedError` if one is in use."""
    old = kept.read(lab)
    if old is None:
        return
    if not _orphaned(host, old):
        if old.owner is not None:
            raise RefusedError(
                f"lab {lab}: process {old.owner.pid} has a machine of this name; end it, or wait "
                "until it has removed it"
            )
        raise RefusedError(f"lab {lab}: exists already; remove it with `mydyno lab down {lab}`")
    qemu_process.tear_down(host, kept, old)


def _with_home(host: Host, kept: Records, state: VmState) -> VmState:
    """Make the machine's folder; raise `RefusedError` where there is something."""
    kept.write(state)
    try:
        folder = make_home(host, Path(state.home))
    except RefusedError:
        kept.forget(state.spec.lab)
        raise
    return kept.write(replace(state, folder=folder))


def _bring_up(host: Host, kept: Records, state: VmState, image: Image) -> Vm:
    """Make its files and boot it; clean up on failure."""
    paths = VmPaths(Path(state.home))
    try:
        seed.plant(host, state.spec.lab, paths, state.port)
        _disks(host, state.spec, paths, image)
        return Vm(host, kept, qemu_process.start(host, kept, state))
    except BaseException:
        qemu_process.tear_down(host, kept, state)
        raise


def _disks(host: Host, spec: VmSpec, paths: VmPaths, image: Image) -> None:
    """Make the overlay of the root filesystem, and the data disks: sparse files."""
    over = ("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.root))
    root_bytes = image.root.stat().st_size + spec.size  # snapshots of data sets are there too
    host.run(Action((*over, str(paths.root), str(root_bytes)))).check()
    for number in range(spec.disks):
        argv = ("truncate", f"--size={spec.size}", str(paths.disk(number)))
        host.run(Action(argv)).check()
