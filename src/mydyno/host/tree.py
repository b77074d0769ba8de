"""The processes that a command of ours has started, all of them, whatever they did to get away.

What leaves its parent, its group and its session becomes a child of ours, once we are a subreaper
(prctl(2)); a child that we did not start ourselves was left behind by a command.
"""

import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER
_LIBC = ctypes.CDLL(None, use_errno=True)
_STEP_S, _PATIENCE_S = 0.01, 5.0
_AFTER_NAME = 20  # fields of /proc/PID/stat after the name, as far as the start time (man proc_pid)

_forking = threading.Lock()  # between a fork and its record nobody may look for strays
_started: "dict[int, subprocess.Popen[bytes]]" = {}


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """A process as /proc shows it: its parent, its start in clock ticks since boot."""

    pid: int
    parent: int
    session: int
    start: int
    dead: bool


def adopt() -> None:
    """Become the parent of all that is left behind by what we start; for a process of our own."""
    _LIBC.prctl(_SUBREAPER, 1, 0, 0, 0)


def spawn(argv: Sequence[str], **ways: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401 - Popen's own
    """Start a command in a session of its own that inherits no file of ours but those given."""
    with _forking:
        _reap()
        process = subprocess.Popen(argv, start_new_session=True, close_fds=True, **ways)
        _started[process.pid] = process
        return process


def started_at(pid: int) -> int:
    """Return when a process began, in clock ticks since boot; 0 if it is gone."""
    found = _look(pid)
    return found.start if found else 0


def end(leader: int, since: int) -> None:
    """Kill all that a command of ours has left, `leader` and strays that began not before `since`.

    Returns when they are gone, or after five seconds.
    """
    until = time.monotonic() + _PATIENCE_S
    while (left := _left(leader, since)) and time.monotonic() < until:
        for one in left:
            _kill(one)
        time.sleep(_STEP_S)


def _left(leader: int, since: int) -> list[ProcessStat]:
    """Return the living processes of a command's tree."""
    with _forking:
        for pid in [p for p, process in _started.items() if process.poll() is not None]:
            del _started[pid]
        known = set(_started) - {leader}
        every = [found for pid in _pids() if (found := _look(pid))]
    us, session = os.getpid(), os.getsid(0)  # what a command started cannot be in our session
    ours = (p for p in every if p.parent == us and p.session != session and p.start >= since)
    strays = {p.pid for p in ours if p.pid not in known}
    tree = strays | {leader}
    grown = True
    while grown:
        more = {p.pid for p in every if p.parent in tree and p.pid not in known} - tree
        tree |= more
        grown = bool(more)
    for one in every:  # a stray is ours to be reaped
        if one.dead and one.pid in strays and one.pid != leader:
            with suppress(ChildProcessError):
                os.waitpid(one.pid, os.WNOHANG)
    return [p for p in every if p.pid in tree and not p.dead]


def _kill(one: ProcessStat) -> None:
    """Kill the very process that was seen: what its descriptor stands for cannot become another."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(one.pid)
        try:
            if started_at(one.pid) == one.start:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _reap() -> None:
    """Let strays go that have ended: somebody may wait for that."""
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid in _started:
                return
            os.waitpid(found.si_pid, os.WNOHANG)


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _look(pid: int) -> ProcessStat | None:
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = raw.rpartition(b")")[2].split()
    if len(fields) < _AFTER_NAME:
        return None
    return ProcessStat(
        pid, int(fields[1]), int(fields[3]), int(fields[19]), fields[0] in {b"Z", b"X"}
    )
