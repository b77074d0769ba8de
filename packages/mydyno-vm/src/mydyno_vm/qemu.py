"""QEMU: a machine's command line, its accelerator, its process."""

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from mydyno.host import Host, Running, halt, processes
from mydyno.host.files import remove
from mydyno.model import Action, HostError
from mydyno_vm.image import Image
from mydyno_vm.throttle import Throttle, set_caps
from mydyno_vm.values import Accelerator, VmPaths, VmRecords, VmSpec, VmState

PROGRAM = "qemu-system-x86_64"
ROOT, SEED = "mydyno-root", "mydyno-seed"
_MEBI = 1 << 20
# Without KVM the newer instructions are emulated one by one, and slower than what they replace.
_CPU = {"kvm": ("host", "kvm"), "tcg": ("Nehalem", "tcg,thread=multi")}
_APPEND = (
    "root=/dev/disk/by-id/virtio-mydyno-root ro console=ttyS0 loglevel=5 panic=-1 "
    "net.ifnames=0 systemd.show_status=error mitigations=off"
)


@dataclass(frozen=True, slots=True)
class Boot:
    """What a machine boots: a kernel and its RAM disk, under an accelerator."""

    kernel: str
    initrd: str
    accelerator: Accelerator


def command(spec: VmSpec, paths: VmPaths, boot: Boot, port: int) -> tuple[str, ...]:
    """Return the command that runs a machine in the foreground.

    Its network is QEMU's own: nothing but `port` of loopback leads in, and nothing leads out.
    A reboot ends QEMU, so that the next kernel can be another one.
    """
    cpu, accelerator = _CPU[boot.accelerator]
    forward = f"user,id=net,restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"
    return (
        *(PROGRAM, "-name", f"mydyno-{spec.lab}", "-pidfile", str(paths.mark)),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-qmp", f"unix:{paths.orders.name},server=on,wait=off"),  # in the folder it starts in
        *("-machine", "q35", "-accel", accelerator, "-cpu", cpu),
        *("-smp", str(_cores(spec, boot)), "-m", f"{spec.memory // _MEBI}M"),
        *("-kernel", boot.kernel, "-initrd", boot.initrd, "-append", _APPEND),
        *("-serial", f"file:{paths.console}", "-device", "virtio-rng-pci"),
        *("-netdev", forward, "-device", "virtio-net-pci,netdev=net,romfile="),
        *_drive(ROOT, f"file={paths.root},format=qcow2,cache=unsafe"),
        *_drive(SEED, f"file={paths.seed},format=raw,readonly=on"),
        *_disks(spec, paths),
    )


def serial(number: int) -> str:
    """Return the serial number of a data disk, counted from 0: its name in /dev/disk/by-id."""
    return f"mydyno{number}"


def _cores(spec: VmSpec, boot: Boot) -> int:
    """Return how many processors it has: emulated ones wait for each other at every turn.

    With one, a command over ssh takes half to two thirds of the time (measured on two cores).
    """
    return 1 if boot.accelerator == "tcg" else spec.cores


def _disks(spec: VmSpec, paths: VmPaths) -> Sequence[str]:
    """Return the data disks; their caches are off, so that a flush is one."""
    words: list[str] = []
    for number in range(spec.disks):
        file = f"file={paths.disk(number)},format=raw,cache=none,aio=threads"
        words += _drive(serial(number), file)
    return words


def _drive(name: str, options: str) -> tuple[str, ...]:
    device = f"virtio-blk-pci,drive={name},serial={name}"
    return ("-drive", f"if=none,id={name},{options}", "-device", device)


def cap(state: VmState, level: float | None) -> None:
    """Give the disks their caps and credits at this level; None takes all caps away."""
    serials = [serial(number) for number in range(state.spec.disks)]
    caps = Throttle() if level is None else state.spec.caps
    set_caps(VmPaths(Path(state.home)).orders, serials, caps, level or 0.0)


KVM = Path("/dev/kvm")
_TRIAL_S = 30.0  # under KVM a kernel reaches its first process in a second or two
_REACHED = b"as init process"


def accelerator(host: Host, image: Image, cached: Path) -> Accelerator:
    """Return ``kvm`` if a kernel of the image boots under it, else ``tcg``.

    The result is cached in the file `cached` until the next boot of this machine.
    """
    if not os.access(KVM, os.R_OK | os.W_OK):
        return "tcg"
    boot = processes.boot_of(host)
    before = cached.read_text("ascii").split() if cached.is_file() else []
    if before[1:] == [boot]:
        return "kvm" if before[0] == "kvm" else "tcg"
    found: Accelerator = "kvm" if _boots(host, image) else "tcg"
    cached.parent.mkdir(parents=True, exist_ok=True)
    cached.write_text(f"{found} {boot}\n", encoding="ascii")
    return found


def _boots(host: Host, image: Image) -> bool:
    """Return whether a kernel reaches its first process; that is missing, so it stops there."""
    kernel = image.kernel(image.releases[0])
    argv = (
        *("timeout", "--signal=KILL", f"{_TRIAL_S:.0f}", PROGRAM, "-nodefaults"),
        *("-no-user-config", "-display", "none", "-no-reboot", "-machine", "q35"),
        *("-accel", "kvm", "-cpu", "host", "-m", "512M", "-serial", "stdio"),
        *("-kernel", str(kernel.vmlinuz), "-initrd", str(kernel.initrd)),
        *("-append", "console=ttyS0 panic=-1 rdinit=/no-such-program root=/dev/no-such-disk"),
    )
    try:
        done = host.run(Action(argv), timeout_s=2 * _TRIAL_S)
    except HostError:
        return False
    return done.returncode == 0 and (_REACHED in done.stdout or b"Kernel panic" in done.stdout)


_BOOT_S = 900.0  # under emulation on a busy machine; under KVM it takes ten seconds
_POLL_S = 1.0
_REMOVAL_S = 600.0
Found = Sequence[processes.Process]
# By the machine's folder, those that this process started: it must see to their end.
_started: dict[Path, Running] = {}
_TAIL = 1500  # bytes of the console that show why a boot failed


def start(host: Host, records: VmRecords, state: VmState, release: str = "") -> VmState:
    """Start a machine with a kernel, or the one it had; return its state when it answers.

    Until then this process owns it: if that is killed, a sweep removes the machine.  Raise
    `HostError` with the end of its console if it does not answer.
    """
    paths = VmPaths(Path(state.home))
    us = processes.identify(host, os.getpid())
    up = replace(state, phase="up", release=release or state.release)
    state = records.write(replace(up, phase="starting", owner=us, qemu=None))
    kernel = Image(Path(state.image)).kernel(state.release)
    boot = Boot(str(kernel.vmlinuz), str(kernel.initrd), state.accelerator)
    argv = command(state.spec, paths, boot, state.port)
    # It is killed when this process ends, unless it is detached.
    bound = () if up.owner is None else ("setpriv", "--pdeathsig", "KILL")
    complaints = paths.home / "qemu.log"
    inside = ("env", "-C", str(paths.home))
    started = host.start(Action((*inside, *bound, *argv)), stderr=complaints)
    _started[paths.home] = started
    qemu_process = processes.identify(host, started.pid)
    if qemu_process:  # its program is not QEMU yet: env and setpriv start that
        qemu_process = replace(qemu_process, program="")
    state = records.write(replace(state, qemu=qemu_process))
    up = replace(up, qemu=qemu_process)
    end_s = time.monotonic() + _BOOT_S
    while time.monotonic() < end_s:
        if started.returncode() is not None:
            raise HostError(f"{_place(state)}: QEMU ended: {_tail(host, complaints)}")
        if _answers(host, state, paths):
            cap(up, up.spec.credits)
            return records.write(up)
        time.sleep(_POLL_S)
    raise HostError(
        f"{_place(state)}: no answer in {_BOOT_S:.0f} s; its console ends: "
        f"{_tail(host, paths.console)}"
    )


def found(host: Host, paths: VmPaths, known: processes.Process | None = None) -> Found:
    """Return the QEMU of a machine: the one in the pid file that QEMU wrote into our folder.

    It must be a QEMU whose command line names that file, and the `known` one where that was
    recorded: a pid file outlives its process, and ids are used again.
    """
    words = host.run(Action(("cat", str(paths.mark)))).stdout.split()
    pids = {int(word) for word in words[:1] if word.isdigit()} | ({known.pid} if known else set())
    # one that was killed before it was recorded has written no pid file yet
    pids |= {one.pid for one in processes.with_argument(host, str(paths.mark))}
    seen = (processes.identify(host, pid) for pid in sorted(pids))
    return tuple(one for one in seen if one is not None and _is_ours(host, paths, one, known))


def _is_ours(
    host: Host, paths: VmPaths, one: processes.Process, known: processes.Process | None
) -> bool:
    if known is not None and not one.same(known):
        return False
    words = host.run(Action(("cat", f"/proc/{one.pid}/cmdline"))).stdout.split(b"\0")
    return Path(one.program).name == PROGRAM and str(paths.mark).encode() in words


def alive(host: Host, paths: VmPaths, known: processes.Process | None = None) -> bool:
    """Return whether its QEMU runs."""
    return bool(found(host, paths, known))


def end(host: Host, paths: VmPaths, known: processes.Process | None = None) -> Sequence[int]:
    """Kill its QEMU and return the ids of what was killed."""
    killed = tuple(one.pid for one in found(host, paths, known) if processes.kill(host, one))
    _reap(paths)
    return killed


def _reap(paths: VmPaths) -> None:
    """Wait for a QEMU that this process started, so that no zombie is left."""
    started = _started.pop(paths.home, None)
    if started is not None:
        halt(started, grace_s=0.0)


def tear_down(host: Host, records: VmRecords, state: VmState) -> Sequence[str]:
    """Remove a machine, whatever state it is in; return what of it was removed.

    Can be cut short and run again.
    """
    paths = VmPaths(Path(state.home))
    with suppress(OSError):  # on a full disk the record that is there is enough
        records.step(state, "removing")
    removed = [f"process {pid}" for pid in end(host, paths, state.qemu)]
    if remove(host, paths.home, dict(state.folder), timeout_s=_REMOVAL_S):
        removed.append(f"files in {paths.home}")
    records.forget(state.spec.lab)
    return tuple(removed)


def _answers(host: Host, state: VmState, paths: VmPaths) -> bool:
    argv = ("ssh", "-F", str(paths.config), state.spec.lab, "--", "uname", "-r")
    try:
        done = host.run(Action(argv), timeout_s=_BOOT_S)
    except HostError:
        return False
    return done.returncode == 0 and done.stdout.decode().strip() == state.release


def _place(state: VmState) -> str:
    return f"lab {state.spec.lab} (Linux {state.release}, {state.accelerator})"


def _tail(host: Host, file: Path) -> str:
    words = host.run(Action(("tail", "-c", str(_TAIL), str(file)))).stdout
    return words.decode(errors="replace").strip() or "nothing"
