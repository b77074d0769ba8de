"""The sampler of a trial: started before the load, ended after it; it never fails a trial.

Overhead: one process at 1 Hz; docs/guide/probe.md quotes what it was measured to cost.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import msgspec

from mydyno.host import Host, Remote, Running, remote_work_folder, uploaded_program
from mydyno.measure.binary import probe_binary
from mydyno.measure.where import Where
from mydyno.model import Action, HostError

# the files of a trial's folder
FILE, ERRORS, WHERE, LOAD, START = (
    "probe.bin", "probe.err", "probe.json", "load.pid", "load.start",
)  # fmt: skip
WALL = "wall"  # in `load.start`: the number is the sampled host's wall clock, not its uptime
_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Watch:
    """What is sampled beside the host: processes by role, and the server of an option file."""

    where: Where
    processes: Mapping[str, int] = field(default_factory=dict)
    server: Path | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """What the sampler knows of the load: which process it is, and when its time began.

    `ahead_ns` is a far host's wall clock less our monotonic one.
    """

    folder: Path
    started: Callable[[int], None] = lambda _: None
    ahead_ns: int | None = None

    def reported(self, t_s: float) -> None:
        """Save the start time of the load, from its first report at `t_s`."""
        if (self.folder / START).exists():
            return
        origin_ns = time.monotonic_ns() - round(t_s * 1e9)
        known = f"{origin_ns}" if self.ahead_ns is None else f"{origin_ns + self.ahead_ns} {WALL}"
        with suppress(OSError):  # a full disk ends the trial where its output is kept
            (self.folder / START).write_text(f"{known}\n", encoding="ascii")


@contextmanager
def sampling(host: Host, folder: Path, watch: Watch) -> Iterator[Sampling]:
    """Sample the host into the trial's folder; without the program or when it fails, do not.

    A trial is valid without its sample, so nothing here fails it; `complaint` returns errors.
    """
    stack = ExitStack()
    try:
        yield _begun(stack, host, folder, watch)
    finally:
        try:
            stack.close()
        except (HostError, OSError) as error:
            _complain(folder, str(error))


def _begun(stack: ExitStack, host: Host, folder: Path, watch: Watch) -> Sampling:
    if not probe_binary():
        return Sampling(folder)
    try:
        (folder / WHERE).write_bytes(msgspec.json.encode(watch.where))
        there = stack.enter_context(remote_work_folder(host, folder))
        running = host.start(_action(host, there, watch), stderr=there / ERRORS)
        stack.callback(_end, running, folder)
        return Sampling(folder, partial(_load_started, host, there), _ahead_ns(host))
    except (HostError, OSError) as error:
        _complain(folder, str(error))
        return Sampling(folder)


def _load_started(host: Host, there: Path, pid: int) -> None:
    """Tell the sampler which process the load is."""
    with suppress(HostError):
        host.run(Action(("tee", str(there / LOAD)), f"{pid}\n".encode()))


def _ahead_ns(host: Host) -> int | None:
    """Return a far host's wall clock less our monotonic one, to half a round trip."""
    if not isinstance(host, Remote):
        return None
    asked_ns = time.monotonic_ns()
    reply = host.run(Action(("date", "+%s%N"))).check().stdout
    return int(reply) - (asked_ns + time.monotonic_ns()) // 2


def _complain(folder: Path, text: str) -> None:
    with suppress(OSError), (folder / ERRORS).open("a", encoding="utf-8") as errors:
        errors.write(f"{text}\n")


def _action(host: Host, there: Path, watch: Watch) -> Action:
    argv = [uploaded_program(host, probe_binary()), "sample", "--out", str(there / FILE)]
    argv += [] if isinstance(host, Remote) else ["--owner", str(os.getpid())]
    argv += ["--process-file", f"load={there / LOAD}"]
    for role, pid in watch.processes.items():
        argv += ["--process", f"{role}={pid}"]
    if watch.server:
        argv += ["--server-defaults", str(watch.server)]
    return Action(tuple(argv))


def _end(running: Running, folder: Path) -> None:
    code = running.returncode()
    running.stop(grace_s=_GRACE_S)
    for _ in running.lines():
        pass  # it prints nothing; reading to the end closes the pipe
    if code is not None:
        _complain(folder, f"mydyno-probe ended before the load did (exit {code})")


def complaint(folder: Path) -> str:
    """Return the errors of a trial's sampler, or ``""``."""
    errors = folder / ERRORS
    return errors.read_text(errors="replace").strip() if errors.exists() else ""
