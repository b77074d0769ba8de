"""The sampler beside a trial: started before the load, ended after it, and never its undoing.

Overhead: one process at 1 Hz; docs/guide/probe.md quotes what it was measured to cost.
"""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from mydyno.host import Host, Running
from mydyno.measure.binary import probe_binary
from mydyno.measure.where import Where
from mydyno.model import Action, HostError

# the files of a trial's folder
FILE, ERRORS, WHERE, LOAD, START = (
    "probe.bin", "probe.err", "probe.json", "load.pid", "load.start",
)  # fmt: skip
_GRACE_S = 3.0


@dataclass(frozen=True, slots=True)
class Watch:
    """What is sampled beside the host: processes by role, and the server of an option file."""

    where: Where
    processes: Mapping[str, int] = field(default_factory=dict)
    server: Path | None = None


@contextmanager
def sampling(host: Host, folder: Path, watch: Watch) -> Iterator[None]:
    """Sample the host into the trial's folder; without the program or when it fails, do not.

    A trial is worth having without its sample, so nothing here fails it; `complaint` tells.
    """
    running = _start(host, folder, watch)
    try:
        yield
    finally:
        if running:
            _end(running, folder)


def _start(host: Host, folder: Path, watch: Watch) -> Running | None:
    program = probe_binary()
    if not program:
        return None
    try:
        (folder / WHERE).write_bytes(msgspec.json.encode(watch.where))
        return host.start(_action(program, folder, watch), stderr=folder / ERRORS)
    except (HostError, OSError) as error:
        _complain(folder, str(error))
        return None


def _end(running: Running, folder: Path) -> None:
    code = running.returncode()
    running.stop(grace_s=_GRACE_S)
    for _ in running.lines():
        pass  # it says nothing there; reading to the end closes the pipe
    if code is not None:
        _complain(folder, f"mydyno-probe ended before the load did (exit {code})")


def _complain(folder: Path, text: str) -> None:
    with suppress(OSError), (folder / ERRORS).open("a", encoding="utf-8") as errors:
        errors.write(f"{text}\n")


def _action(program: str, folder: Path, watch: Watch) -> Action:
    argv = [program, "sample", "--out", str(folder / FILE), "--owner", str(os.getpid())]
    argv += ["--process-file", f"load={folder / LOAD}"]
    for role, pid in watch.processes.items():
        argv += ["--process", f"{role}={pid}"]
    if watch.server:
        argv += ["--server-defaults", str(watch.server)]
    return Action(tuple(argv))


def load_started(folder: Path, pid: int) -> None:
    """Tell the sampler which process the load is."""
    with suppress(OSError):  # a full disk ends the trial where its output is kept
        (folder / LOAD).write_text(f"{pid}\n", encoding="ascii")


def load_reported(folder: Path, t_s: float) -> None:
    """Keep when the load's time began, as its first report tells, which says it is `t_s` old."""
    if not (folder / START).exists():
        origin_ns = time.monotonic_ns() - round(t_s * 1e9)
        with suppress(OSError):
            (folder / START).write_text(f"{origin_ns}\n", encoding="ascii")


def complaint(folder: Path) -> str:
    """Return what the sampler of a trial complained of, or ``""``."""
    errors = folder / ERRORS
    return errors.read_text(errors="replace").strip() if errors.exists() else ""
