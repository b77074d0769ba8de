"""Processes and mounts of a host."""

import re
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

from mydyno.host.files import resolved
from mydyno.host.local import Local, signal_same
from mydyno.host.protocol import Host, ask
from mydyno.model import Action, HostError, Probe

_STEP_S = 0.02
_BOOT = Action(("cat", "/proc/sys/kernel/random/boot_id"))
_ROOT = Action(("id", "-u"))
_LOOK = (
    'cat "/proc/$1/stat" || exit 1; cat /proc/sys/kernel/random/boot_id; readlink "/proc/$1/exe"; :'
)
# Signals a process that began then, in that boot: the number may be another's by now.
_KILL = """
boot=$(cat /proc/sys/kernel/random/boot_id) stat=$(cat "/proc/$1/stat" 2>/dev/null) || exit 0
pid=$1 began=$2 then=$3 signal=$4
[ -z "$then" ] || [ "$then" = "$boot" ] || exit 0
set -- ${stat##*)}
[ "${20}" != "$began" ] || kill -"$signal" "$pid"
"""
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


def ending_with_us(action: Action) -> Action:
    """Return a command that is killed where the process that starts it ends."""
    return replace(action, argv=("setpriv", "--pdeathsig", "KILL", "--", *action.argv))


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
    # a name may hold lines and brackets, so that the last two lines are cut off from the right
    stat, *rest = done.stdout.removesuffix(b"\n").rsplit(b"\n", 2)
    started = parse_started(stat) if done.returncode == 0 else None
    if started is None or len(rest) != len(("boot", "program")):
        return None
    boot, program = (line.decode(errors="surrogateescape") for line in rest)
    return Process(pid, started, program.removesuffix(_DELETED), boot)


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
    if isinstance(host, Local):
        signal_same(process.pid, number, lambda: alive(host, process))
    else:
        known = (str(process.pid), str(process.started), process.boot, number.name[3:])
        host.run(Action(("sh", "-c", _KILL, "kill", *known)))


_MOUNTS = Action(("cat", "/proc/self/mountinfo"))
_NUMBER = 'real=$(readlink -e -- "$1") && [ -b "$real" ] && cat "/sys/class/block/${real##*/}/dev"'


@dataclass(frozen=True, slots=True)
class Mount:
    """One line of mountinfo: where, from what, the device's ``major:minor``, the filesystem."""

    target: str
    source: str
    number: str = ""
    kind: str = ""


def parse_mounts(raw: bytes) -> Sequence[Mount]:
    """Return the mounts of /proc/PID/mountinfo, oldest first (man proc(5))."""
    mounts = []
    for line in raw.decode(errors="surrogateescape").splitlines():
        left, found, right = line.partition(" - ")
        here, there = left.split(" "), right.split(" ")
        if found and len(here) > 4 and len(there) > 1:  # noqa: PLR2004 - the fifth field is the place
            mounts.append(Mount(_unescape(here[4]), _unescape(there[1]), here[2], there[0]))
    return tuple(mounts)


def mounts(host: Host) -> Sequence[Mount]:
    """Return the mounts of this mount namespace, oldest first."""
    return ask(host, Probe(_MOUNTS, parse_mounts))


def mount_at(host: Host, target: Path) -> Mount | None:
    """Return the topmost mount at exactly this path, or None."""
    found = [mount for mount in mounts(host) if mount.target == str(target)]
    return found[-1] if found else None


def number_of(host: Host, device: str) -> str:
    """Return a block device's ``major:minor``, or ``""`` where there is none."""
    return host.run(Action(("sh", "-c", _NUMBER, "number", device))).stdout.decode().strip()


def foreign(host: Host, target: Path, device: str) -> str:
    """Return a description of a mount at `target` that is not of `device`, or ``""``.

    btrfs shows an anonymous device number, so its source device is compared instead.
    """
    if (real := resolved(host, target)) != target:
        return f"{target} is a link to {real}"
    mount = mount_at(host, target)
    if mount is None:
        return ""
    number = number_of(host, mount.source) if mount.kind == "btrfs" else mount.number
    ours = number_of(host, device)
    if ours and number == ours:
        return ""
    return f"{mount.source} ({mount.kind}, {mount.number}) is mounted at {target}, not {device}"


def refuse_foreign(host: Host, target: Path, device: str) -> None:
    """Raise `HostError` where something else than `device` is mounted at `target`."""
    if found := foreign(host, target, device):
        raise HostError(f"{target}: not unmounted: {found}; inspect it with `findmnt {target}`")


def _unescape(text: str) -> str:
    """Undo mountinfo's octal escapes of space, tab, newline and backslash."""
    return re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), text)
