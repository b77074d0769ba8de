"""A process named for good: its id and its start time, so that a recycled id is never killed."""

import time
from dataclasses import dataclass

from mydyno.host import Host
from mydyno.model import Action

_POLL_S = 0.02


@dataclass(frozen=True, slots=True)
class Process:
    """A process id and when that process started, in clock ticks since boot."""

    pid: int
    started: int


def parse_started(stat: bytes) -> int | None:
    """Return field 22 of /proc/PID/stat, or None for a zombie or a torn line (man proc(5))."""
    fields = stat.rpartition(b")")[2].split()
    if len(fields) < 20 or fields[0] == b"Z":  # noqa: PLR2004 - field 3 is the first after the name
        return None
    return int(fields[19])


def identify(host: Host, pid: int) -> Process | None:
    """Return the process that now has this id, or None if none lives."""
    done = host.run(Action(("cat", f"/proc/{pid}/stat")))
    started = parse_started(done.stdout) if done.returncode == 0 else None
    return None if started is None else Process(pid, started)


def alive(host: Host, process: Process | None) -> bool:
    """Return whether this very process still lives."""
    return process is not None and identify(host, process.pid) == process


def kill(host: Host, process: Process, *, within_s: float = 5.0) -> bool:
    """Kill this very process and wait until it is gone; return whether it lived."""
    if not alive(host, process):
        return False
    host.run(Action(("kill", "-KILL", str(process.pid))))
    until = time.monotonic() + within_s
    while alive(host, process) and time.monotonic() < until:
        time.sleep(_POLL_S)
    return True
