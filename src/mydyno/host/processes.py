"""Processes identified by pid, start time, boot and program, and how to end them.

A pid alone may be reused; every check and signal here is for exactly the identified process.
"""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

from mydyno.host.local import Local
from mydyno.host.protocol import Host
from mydyno.model import Action, HostError

_STEP_S = 0.02
_BOOT = Action(("cat", "/proc/sys/kernel/random/boot_id"))
_ROOT = Action(("id", "-u"))
_LOOK = (
    'cat "/proc/$1/stat" || exit 1; cat /proc/sys/kernel/random/boot_id; readlink "/proc/$1/exe"; :'
)
_FIND = 'grep -lzxF -e "$1" -- /proc/[0-9]*/cmdline 2>/dev/null; :'
_AFTER_NAME = 20  # fields of /proc/PID/stat after the name, as far as the start time (man proc_pid)
_DELETED = " (deleted)"  # of a program that was replaced while it runs
_GENTLY = (signal.SIGTERM, signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Process:
    """A process id, when that process started (clock ticks since boot), its program, the boot.

    Empty fields are unknown, for example the program of another user's process.
    """

    pid: int
    started: int
    program: str = ""
    boot: str = ""

    @classmethod
    def of(cls, facts: Mapping[str, str]) -> Self:
        """Return the process that a change record names."""
        return cls(int(facts["pid"]), int(facts["start"]), facts["exe"], facts["boot"])

    @property
    def facts(self) -> dict[str, str]:
        """Return its fields for a change record."""
        where = {"pid": str(self.pid), "start": str(self.started)}
        return {**where, "boot": self.boot, "exe": self.program}

    def same(self, other: "Process") -> bool:
        """Return whether both are the same process, as far as both are known."""
        if (self.pid, self.started) != (other.pid, other.started):
            return False
        pairs = ((self.program, other.program), (self.boot, other.boot))
        return all(not one or not two or one == two for one, two in pairs)


def boot_of(host: Host) -> str:
    """Return the id of the host's present boot."""
    return host.run(_BOOT).check().stdout.decode().strip()


def is_root(host: Host) -> bool:
    """Return whether commands run as root there."""
    return host.run(_ROOT).stdout.strip() == b"0"


def parse_started(stat: bytes) -> int | None:
    """Return field 22 of /proc/PID/stat, or None for a zombie or a torn line (man proc_pid)."""
    fields = stat.rpartition(b")")[2].split()
    if len(fields) < _AFTER_NAME or fields[0] == b"Z":
        return None
    return int(fields[_AFTER_NAME - 1])


def identify(host: Host, pid: int) -> Process | None:
    """Return the process that has this pid now, or None."""
    done = host.run(Action(("sh", "-c", _LOOK, "look", str(pid))))
    stat, _, rest = done.stdout.rpartition(b")")[2].partition(b"\n")
    started = parse_started(b")" + stat) if done.returncode == 0 else None
    if started is None:
        return None
    boot, _, program = rest.decode(errors="surrogateescape").partition("\n")
    return Process(pid, started, program.rstrip("\n").removesuffix(_DELETED), boot)


def alive(host: Host, process: Process | None) -> bool:
    """Return whether exactly this process is still running."""
    if process is None or (now := identify(host, process.pid)) is None:
        return False
    return now.same(process)


def with_argument(host: Host, argument: str) -> list[Process]:
    """Return the processes with exactly this argument in their command line."""
    done = host.run(Action(("sh", "-c", _FIND, "find", argument)))
    pids = [int(line.split("/")[2]) for line in done.stdout.decode().splitlines()]
    return [process for pid in pids if (process := identify(host, pid))]


def end(host: Host, process: Process, *, patience_s: float = 10.0) -> bool:
    """End this process: SIGTERM, after `patience_s` SIGKILL; return whether it was running.

    Raises `HostError` where it does not end.
    """
    if not alive(host, process):
        return False
    if not any(_signalled(host, process, number, patience_s) for number in _GENTLY):
        raise HostError(f"{host.name}: process {process.pid} ({process.program}) cannot be ended")
    return True


def kill(host: Host, process: Process, *, within_s: float = 5.0) -> bool:
    """Kill this process and wait up to `within_s`; return whether it was running."""
    lived = alive(host, process)
    if lived:
        _signalled(host, process, signal.SIGKILL, within_s)
    return lived


def _signalled(host: Host, process: Process, number: signal.Signals, patience_s: float) -> bool:
    """Send a signal and wait; return whether the process is gone."""
    _signal(host, process, number)
    until = time.monotonic() + patience_s
    while alive(host, process):
        if time.monotonic() > until:
            return False
        time.sleep(_STEP_S)
    return True


def _signal(host: Host, process: Process, number: signal.Signals) -> None:
    if not isinstance(host, Local):
        host.run(Action(("kill", f"-{number.name[3:]}", str(process.pid))))
        return
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if alive(host, process):  # a pidfd never refers to another process
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
