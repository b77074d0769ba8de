"""Virtual machines: creating, finding and removing them, also for dead owners."""

import io
import os
import tarfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mydyno.host import Host, processes
from mydyno.host.files import make_home, resolved
from mydyno.journal.register import clear_parts
from mydyno.lab.loop_lab import refuse_foreign
from mydyno.model import Action, RefusedError, SpecError
from mydyno.server.instance import free_port
from mydyno_vm import qemu
from mydyno_vm.image import Image, build, refuse_lacking
from mydyno_vm.machine import Vm
from mydyno_vm.qemu import accelerator
from mydyno_vm.throttle import throttle
from mydyno_vm.values import VmPaths, VmRecords, VmSpec, VmState, check, records

_SECRET, _PUBLIC, _FOLDER = 0o600, 0o644, 0o700


def plant(host: Host, lab: str, paths: VmPaths, port: int) -> None:
    """Make the machine's keys, the archive that it takes them from, and its ssh configuration."""
    for key in (paths.key, paths.host_key):
        argv = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"mydyno {lab}", "-f")
        host.run(Action((*argv, str(key)))).check()
    paths.seed.touch(_SECRET)
    paths.seed.write_bytes(archive(lab, paths.host_key, paths.key))
    public = _public(paths.host_key).read_text("ascii")
    paths.known_hosts.write_text(f"[127.0.0.1]:{port} {public}", encoding="ascii")
    paths.config.write_text(configuration(lab, paths, port), encoding="utf-8")


def archive(lab: str, host_key: Path, key: Path) -> bytes:
    """Return the archive that the machine unpacks over its root when it boots."""
    files = (
        ("etc/hostname", f"{lab}\n".encode(), _PUBLIC),
        ("etc/hosts", f"127.0.0.1 localhost\n127.0.1.1 {lab}\n".encode(), _PUBLIC),
        ("etc/ssh/ssh_host_ed25519_key", host_key.read_bytes(), _SECRET),
        ("etc/ssh/ssh_host_ed25519_key.pub", _public(host_key).read_bytes(), _PUBLIC),
        ("root/.ssh/authorized_keys", _public(key).read_bytes(), _SECRET),
    )
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        folder = tarfile.TarInfo("root/.ssh")
        folder.type, folder.mode = tarfile.DIRTYPE, _FOLDER
        tar.addfile(folder)
        for name, content, mode in files:
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), mode
            tar.addfile(member, io.BytesIO(content))
    return buffer.getvalue()


def configuration(lab: str, paths: VmPaths, port: int) -> str:
    """Return the configuration under which ``ssh LAB`` reaches the machine and no other one."""
    lines = {
        "HostName": "127.0.0.1",
        "Port": str(port),
        "User": "root",
        "IdentityFile": f'"{paths.key}"',
        "IdentitiesOnly": "yes",
        "UserKnownHostsFile": f'"{paths.known_hosts}"',
        "GlobalKnownHostsFile": "none",
        "StrictHostKeyChecking": "yes",
        "HostKeyAlgorithms": "ssh-ed25519",
        "BatchMode": "yes",
        "ConnectTimeout": "60",
        "ServerAliveInterval": "30",
        "ServerAliveCountMax": "6",
    }
    return f"Host {lab}\n" + "".join(f"  {name} {value}\n" for name, value in lines.items())


def _public(key: Path) -> Path:
    return key.with_name(f"{key.name}.pub")


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
    caps = throttle(spec.disk_class) if spec.disk_class else spec.caps
    image = build(host, say)
    kernel = image.kernel(spec.kernel)
    states = records()
    _clear(host, states, spec.lab)
    found = accelerator(host, image, states.folder.parent / "accelerator")
    us = processes.identify(host, os.getpid())
    capped = replace(spec, caps=caps)
    where, port = str(resolved(host, home.absolute())), free_port(host)
    folder, release = str(image.folder), kernel.release
    state = VmState(capped, where, folder, "starting", found, port, release, us)
    state = _with_home(host, states, state)
    return _bring_up(host, states, replace(state, owner=None if detached else us), image)


def attach(host: Host, lab: str) -> Vm:
    """Return a machine that is up; raise `SpecError` if there is none of that name."""
    states = records()
    state = states.read(lab)
    if state is None:
        known = ", ".join(s.spec.lab for s in states.all()) or "none"
        raise SpecError(f"lab {lab}: does not exist on {host.name}; known: {known}")
    return Vm(host, states, state)


def listing() -> Sequence[VmState]:
    """Return the machines, by name."""
    return records().all()


def sweep(host: Host) -> Sequence[str]:
    """Remove machines of dead owners; return a line for each.

    Can be run at any time, by anyone.
    """
    states = records()
    clear_parts(states.folder)
    orphans = [state for state in states.all() if _orphaned(host, state)]
    return tuple(
        f"lab {state.spec.lab}: leftover; removed {', '.join(qemu.tear_down(host, states, state))}"
        for state in orphans
    )


def down(host: Host, lab: str) -> Sequence[str]:
    """Remove a machine and all it wrote; return what was removed.

    Raise `SpecError` if there is none of that name, `RefusedError` if another process uses it.
    """
    vm = attach(host, lab)
    refuse_foreign(lab, vm.state.owner)
    return vm.remove()


def _orphaned(host: Host, state: VmState) -> bool:
    """Return whether its owner is dead, or, if it is detached, its QEMU."""
    if state.owner is not None or state.phase != "up":
        return not processes.alive(host, state.owner)
    return not qemu.alive(host, VmPaths(Path(state.home)), state.qemu)


def _clear(host: Host, states: VmRecords, lab: str) -> None:
    """Remove a leftover machine of this name; raise `RefusedError` if one is in use."""
    old = states.read(lab)
    if old is None:
        return
    if not _orphaned(host, old):
        if old.owner is not None:
            raise RefusedError(
                f"lab {lab}: process {old.owner.pid} has a machine of this name; end it, or wait "
                "until it has removed it"
            )
        raise RefusedError(f"lab {lab}: exists already; remove it with `mydyno lab down {lab}`")
    qemu.tear_down(host, states, old)


def _with_home(host: Host, states: VmRecords, state: VmState) -> VmState:
    """Make the machine's folder; raise `RefusedError` where there is something."""
    states.write(state)
    try:
        folder = make_home(host, Path(state.home))
    except RefusedError:
        states.forget(state.spec.lab)
        raise
    return states.write(replace(state, folder=folder))


def _bring_up(host: Host, states: VmRecords, state: VmState, image: Image) -> Vm:
    """Make its files and boot it; clean up on failure."""
    paths = VmPaths(Path(state.home))
    try:
        plant(host, state.spec.lab, paths, state.port)
        _disks(host, state.spec, paths, image)
        return Vm(host, states, qemu.start(host, states, state))
    except BaseException:
        qemu.tear_down(host, states, state)
        raise


def _disks(host: Host, spec: VmSpec, paths: VmPaths, image: Image) -> None:
    """Make the overlay of the root filesystem, and the data disks: sparse files."""
    over = ("qemu-img", "create", "-q", "-f", "qcow2", "-F", "raw", "-b", str(image.root))
    root_bytes = image.root.stat().st_size + spec.size  # snapshots of data sets are there too
    host.run(Action((*over, str(paths.root), str(root_bytes)))).check()
    for number in range(spec.disks):
        argv = ("truncate", f"--size={spec.size}", str(paths.disk(number)))
        host.run(Action(argv)).check()
