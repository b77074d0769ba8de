"""A process named for good: its id, start, program and boot, so that no other one is killed."""

import time
from dataclasses import dataclass

from mydyno.host import Host
from mydyno.model import Action

_POLL_S = 0.02
_BOOT = Action(("cat", "/proc/sys/kernel/random/boot_id"))
_DELETED = " (deleted)"  # of a program that was replaced while it runs
_LOOK = (
    'cat "/proc/$1/stat" || exit 1; cat /proc/sys/kernel/random/boot_id; readlink "/proc/$1/exe"; :'
)


@dataclass(frozen=True, slots=True)
class Process:
    """A process id, when that process started (clock ticks since boot), its program, the boot.

    What is empty is not known: the program of another user's process.
    """

    pid: int
    started: int
    program: str = ""
    boot: str = ""


def parse_started(stat: bytes) -> int | None:
    """Return field 22 of /proc/PID/stat, or None for a zombie or a torn line (man proc(5))."""
    fields = stat.rpartition(b")")[2].split()
    if len(fields) < 20 or fields[0] == b"Z":  # noqa: PLR2004 - field 3 is the first after the name
        return None
    return int(fields[19])


def identify(host: Host, pid: int) -> Process | None:
    """Return the process that now has this id, or None if none lives."""
    done = host.run(Action(("sh", "-c", _LOOK, "look", str(pid))))
    stat, _, rest = done.stdout.rpartition(b")")[2].partition(b"\n")
    started = parse_started(b")" + stat) if done.returncode == 0 else None
    if started is None:
        return None
    boot, _, program = rest.decode(errors="surrogateescape").partition("\n")
    return Process(pid, started, program.rstrip("\n").removesuffix(_DELETED), boot)


def boot_of(host: Host) -> str:
    """Return what names this boot of a host."""
    return host.run(_BOOT).check().stdout.decode().strip()


def alive(host: Host, process: Process | None) -> bool:
    """Return whether this very process still lives."""
    if process is None or (now := identify(host, process.pid)) is None:
        return False
    same = now.started == process.started
    program = not (process.program and now.program) or process.program == now.program
    return same and program and process.boot in {"", now.boot}


def kill(host: Host, process: Process, *, within_s: float = 5.0) -> bool:
    """Kill this very process and wait until it is gone; return whether it lived."""
    if not alive(host, process):
        return False
    host.run(Action(("kill", "-KILL", str(process.pid))))
    until = time.monotonic() + within_s
    while alive(host, process) and time.monotonic() < until:
        time.sleep(_POLL_S)
    return True
