"""Processes that are ours for good: known by pid, start time, boot and executable, ended by that.

A pid alone is used again by others; each look and each signal here is for the very process.
"""

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

from mydyno.host.local import Local
from mydyno.host.protocol import Host
from mydyno.model import Action, HostError

Facts = Mapping[str, str]
_STEP_S = 0.02
_LOOK = (
    'cat "/proc/$1/stat" 2>/dev/null; printf "\\0"; cat /proc/sys/kernel/random/boot_id; '
    'readlink "/proc/$1/exe" 2>/dev/null; :'
)
_FIND = 'grep -lzxF -e "$1" -- /proc/[0-9]*/cmdline 2>/dev/null; :'
_AFTER_NAME = 20  # fields of /proc/PID/stat after the name, as far as the start time (man proc_pid)


def identify(host: Host, pid: int) -> dict[str, str]:
    """Return what a process is known by, or nothing if none lives (a zombie does not)."""
    done = host.run(Action(("sh", "-c", _LOOK, "look", str(pid))))
    stat, _, rest = done.stdout.decode(errors="replace").partition("\0")
    fields = stat.rpartition(")")[2].split()
    lines = rest.splitlines()
    if len(fields) < _AFTER_NAME or fields[0] == "Z" or not lines:
        return {}
    exe = lines[1] if len(lines) > 1 else ""
    return {"pid": str(pid), "start": fields[19], "boot": lines[0], "exe": exe}


def still(host: Host, facts: Facts) -> bool:
    """Return whether this very process lives."""
    return bool(facts.get("pid")) and identify(host, int(facts["pid"])) == dict(facts)


def with_argument(host: Host, argument: str) -> list[dict[str, str]]:
    """Return the processes that have exactly this word in their command line."""
    done = host.run(Action(("sh", "-c", _FIND, "find", argument)))
    pids = [int(line.split("/")[2]) for line in done.stdout.decode().splitlines()]
    return [facts for pid in pids if (facts := identify(host, pid))]


def end(host: Host, facts: Facts, *, patience_s: float = 10.0) -> bool:
    """End this very process: SIGTERM, after `patience_s` SIGKILL; return whether it lived.

    Raises `HostError` where it does not go.
    """
    if not still(host, facts):
        return False
    for number in (signal.SIGTERM, signal.SIGKILL):
        _signal(host, facts, number)
        until = time.monotonic() + patience_s
        while time.monotonic() < until:
            if not still(host, facts):
                return True
            time.sleep(_STEP_S)
    raise HostError(f"{host.name}: process {facts['pid']} ({facts['exe']}) cannot be ended")


def _signal(host: Host, facts: Facts, number: signal.Signals) -> None:
    pid = int(facts["pid"])
    if not isinstance(host, Local):
        host.run(Action(("kill", f"-{number.name[3:]}", str(pid))))
        return
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if still(host, facts):  # what the descriptor stands for cannot become another
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)
