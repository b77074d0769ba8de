"""Processes that a bench starts, and what they cost: CPU time and peak memory."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

KIB = 1024
_GRACE_S = 10.0


class Fault(Exception):  # noqa: N818 - reads as what it is
    """What a bench could not do, in words for a person."""


@contextmanager
def started(
    argv: Sequence[str], log: Path, *, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the block ends; it dies with us, even if we are killed."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "TERM", *argv],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    try:
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> int:
    """Send SIGTERM to the process, SIGKILL if it takes long, and return its exit code."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
    return process.wait()


def refuse_dead(process: subprocess.Popen[bytes], name: str, log: Path) -> None:
    """Raise `Fault` with the last words of a process that should run and does not."""
    if process.poll() is not None:
        words = log.read_text(errors="replace").strip()[-400:]
        raise Fault(f"{name}: ended with {process.returncode}: {words}")


def cpu_ns(pid: int) -> int:
    """Return the CPU time of a process, all its threads, ended ones too, in nanoseconds.

    The clock of another process (clock_getcpuclockid(3)) is exact; /proc/PID/stat counts in
    hundredths of a second, which is what a good sampler uses in ten.
    """
    return time.clock_gettime_ns(((~pid) << 3) | 2)


def tree(pid: int) -> list[int]:
    """Return the process and those that it started, and they."""
    found = [pid]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def tree_cpu_ns(pid: int) -> int:
    """Return the CPU time of the process and all that it started, in nanoseconds."""
    return sum(map(cpu_ns, tree(pid)))


def peak_bytes(pid: int) -> int:
    """Return the largest resident size so far, of the process and all that it started."""
    return sum(_high_water(one) for one in tree(pid))


def _high_water(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * KIB
    return 0


def size(path: Path | None) -> int:
    """Return the bytes of a file, 0 where there is none."""
    return path.stat().st_size if path and path.exists() else 0


def sleep_until(deadline: float) -> None:
    """Return at a time of the monotonic clock."""
    time.sleep(max(0.0, deadline - time.monotonic()))
