"""A machine's QEMU: started, waited for, found again by what was recorded, and ended."""

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mydyno.host import Host, Running, processes
from mydyno.host.trusted import remove
from mydyno.lab.vm import qemu
from mydyno.lab.vm.image import Image
from mydyno.lab.vm.values import VmPaths, VmState
from mydyno.lab.vm.vm_registry import Records
from mydyno.model import Action, HostError

_BOOT_S = 900.0  # under emulation on a busy machine; under KVM it takes ten seconds
_POLL_S = 1.0
_REMOVAL_S = 600.0
Found = Sequence[processes.Process]
# By the machine's folder, those that this process started: it must see to their end.
_started: dict[Path, Running] = {}
_TAIL = 1500  # bytes of the console that tell why a boot failed


def start(host: Host, records: Records, state: VmState, release: str = "") -> VmState:
    """Start a machine with a kernel, or the one it had; return its state when it answers.

    Until then this process owns it: if that is killed, a sweep removes the machine.  Raise
    `HostError` with the end of its console if it does not answer.
    """
    paths = VmPaths(Path(state.home))
    us = processes.identify(host, os.getpid())
    up = replace(state, phase="up", release=release or state.release)
    state = records.write(replace(up, phase="starting", owner=us, qemu=None))
    kernel = Image(Path(state.image)).kernel(state.release)
    boot = qemu.Boot(str(kernel.vmlinuz), str(kernel.initrd), state.accelerator)
    argv = qemu.command(state.spec, paths, boot, state.port)
    # It is killed when this process ends, unless it is detached.
    bound = () if up.owner is None else ("setpriv", "--pdeathsig", "KILL")
    complaints = paths.home / "qemu.log"
    started = host.start(Action((*bound, *argv)), stderr=complaints)
    _started[paths.home] = started
    qemu_process = processes.identify(host, started.pid)
    if qemu_process:  # its program is not QEMU yet where setpriv starts that
        qemu_process = replace(qemu_process, program="")
    state = records.write(replace(state, qemu=qemu_process))
    up = replace(up, qemu=qemu_process)
    end_s = time.monotonic() + _BOOT_S
    while time.monotonic() < end_s:
        if started.returncode() is not None:
            raise HostError(f"{_place(state)}: QEMU ended: {_tail(host, complaints)}")
        if _answers(host, state, paths):
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
    seen = (processes.identify(host, pid) for pid in sorted(pids))
    return tuple(one for one in seen if one is not None and _is_ours(host, paths, one, known))


def _is_ours(
    host: Host, paths: VmPaths, one: processes.Process, known: processes.Process | None
) -> bool:
    if known is not None and not one.same(known):
        return False
    words = host.run(Action(("cat", f"/proc/{one.pid}/cmdline"))).stdout.split(b"\0")
    return Path(one.program).name == qemu.PROGRAM and str(paths.mark).encode() in words


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
        started.stop(grace_s=0.0)
        for _ in started.lines():
            pass  # it prints nothing; reading to the end closes the pipe


def tear_down(host: Host, records: Records, state: VmState) -> Sequence[str]:
    """Remove a machine, whatever state it is in; return what of it was removed.

    Can be cut short and run again.
    """
    paths = VmPaths(Path(state.home))
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
