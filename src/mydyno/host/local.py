"""The local host."""

import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.host import tree
from mydyno.host.protocol import LONGEST_LINE, Completed, Running
from mydyno.model import Action, HostError

_CHUNK = 1 << 16
_STEP_S = 0.1
_LATE_S = 1.0  # output is read for so long after the end of a command
_MOST = 1 << 30  # bytes of output of a command: a list of all files of a large data set


@dataclass(slots=True)
class LocalRunning:
    """A child process in its own session; all processes that it starts end with it."""

    _process: "subprocess.Popen[bytes]"
    _since: int = field(init=False)

    def __post_init__(self) -> None:
        """Note its start time: older processes are not its children."""
        self._since = tree.started_at(self._process.pid)

    @property
    def pid(self) -> int:
        """Return its process id."""
        return self._process.pid

    def lines(self) -> Iterator[bytes]:
        """Yield each line of its standard output as it arrives, a longer one in pieces.

        The output ends with the process, even if another process holds the pipe open.
        """
        out = self._process.stdout
        if out is None or out.closed:
            return
        rest = b""
        with out:
            for raw in self._raw(out.fileno()):
                *complete, rest = (rest + raw).split(b"\n")
                for line in complete:
                    yield from _pieces(line + b"\n")
                while len(rest) >= LONGEST_LINE:
                    yield rest[:LONGEST_LINE]
                    rest = rest[LONGEST_LINE:]
        if rest:
            yield rest

    def returncode(self) -> int | None:
        """Return its exit code, or None while it runs."""
        return self._process.poll()

    def stop(self, *, grace_s: float = 10.0) -> int:
        """End it and all processes it started: SIGTERM to its group, then SIGKILL."""
        if self._process.poll() is None:
            self._signal(signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(grace_s)
        if self._process.poll() is None:
            self._signal(signal.SIGKILL)
        code = self._process.wait()
        tree.end(self._process.pid, self._since)
        return code

    def _raw(self, descriptor: int) -> Iterator[bytes]:
        """Yield what is written, until the end of the output or of the process."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        end_s = float("inf")
        while time.monotonic() < end_s:
            if poll.poll(_STEP_S * 1000):
                raw = os.read(descriptor, _CHUNK)
                if not raw:
                    return
                yield raw
            elif end_s < float("inf"):
                return  # it has ended, and nothing is left in the pipe
            if end_s == float("inf") and self._process.poll() is not None:
                end_s = time.monotonic() + _LATE_S

    def _signal(self, number: signal.Signals) -> None:
        # its pid cannot be reused: it was not waited for yet
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


@dataclass(frozen=True, slots=True)
class Local:
    """The local host."""

    name: str = "localhost"

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command and wait for its end, not for processes that it leaves behind."""
        with _memory(action.stdin) as given, _memory() as out, _memory() as errors:
            try:
                # a session of its own: Ctrl-C must not end commands that restore the host
                process = tree.spawn(action.argv, stdin=given, stdout=out, stderr=errors)
            except FileNotFoundError as error:
                raise HostError(_missing(action)) from error
            try:
                _await(process, action, timeout_s, (out, errors))
            finally:
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
            return Completed(action, process.returncode, _all(out), _all(errors))

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command in a session of its own."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        errors = os.open(stderr or os.devnull, flags, 0o600)
        try:
            process = tree.spawn(
                action.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        except FileNotFoundError as error:
            raise HostError(_missing(action)) from error
        finally:
            os.close(errors)
        return LocalRunning(process)

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file with its mode, atomically."""
        with tempfile.NamedTemporaryFile(dir=remote.parent, delete=False) as part:
            part.write(local.read_bytes())
        shutil.copymode(local, part.name)
        Path(part.name).replace(remote)

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file atomically; raise `HostError` where there is none."""
        try:
            self.push(remote, local)
        except OSError as error:
            raise HostError(f"{remote}: {error.strerror}") from error


@contextmanager
def _memory(raw: bytes = b"") -> Iterator[int]:
    """Yield the descriptor of a memory file with initial content `raw`."""
    descriptor = os.memfd_create("mydyno", os.MFD_CLOEXEC)
    try:
        left = memoryview(raw)
        while left:
            left = left[os.write(descriptor, left) :]
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield descriptor
    finally:
        os.close(descriptor)


def _await(
    process: "subprocess.Popen[bytes]", action: Action, timeout_s: float, outputs: tuple[int, int]
) -> None:
    """Wait for a command; raise `HostError` if it exceeds the timeout or the output limit."""
    name = action.argv[0]
    end_s = time.monotonic() + timeout_s
    ended = select.poll()
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        process.wait()
        return
    try:
        ended.register(descriptor, select.POLLIN)
        while not ended.poll(_STEP_S * 1000):
            if time.monotonic() > end_s:
                raise HostError(f"{name}: timed out after {timeout_s:g} s")
            if max(os.fstat(out).st_size for out in outputs) > _MOST:
                raise HostError(f"{name}: printed more than {_MOST} bytes and was ended")
    finally:
        os.close(descriptor)
    process.wait()


def _all(descriptor: int) -> bytes:
    size = min(os.fstat(descriptor).st_size, _MOST)
    return os.pread(descriptor, size, 0)


def _pieces(line: bytes) -> Iterator[bytes]:
    for at in range(0, len(line), LONGEST_LINE):
        yield line[at : at + LONGEST_LINE]


def _missing(action: Action) -> str:
    return f"{action.argv[0]}: not found on this host; install it or name its path"
