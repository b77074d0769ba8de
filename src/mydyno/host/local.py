"""The local host: commands in process groups that end with us, signals, namespaces."""

import ctypes
import os
import select
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from mydyno.host.protocol import LONGEST_LINE, Completed, Host, Running
from mydyno.model import Action, HostError

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_PATIENCE = b"mydyno: restoring the host; please wait\n"


class _State:
    """Whether signals are deferred, and whether one was received."""

    deferred = False
    came = False


def install() -> None:
    """Let the first of the signals raise `KeyboardInterrupt`; later ones only print."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:  # as `nohup` wants it
            signal.signal(number, _interrupt)


@contextmanager
def shielded() -> Iterator[None]:
    """Defer signals until the end of the block."""
    before, _State.deferred = _State.deferred, True
    try:
        yield
    finally:
        _State.deferred = before
    if _State.came and not before:
        raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[None]:
    """Handle signals at once again, within a `shielded` block."""
    before = _State.deferred
    try:
        _State.deferred = False
        if _State.came:
            raise KeyboardInterrupt
        yield
    finally:
        _State.deferred = before


def _interrupt(number: int, frame: FrameType | None) -> None:
    del number, frame
    if _State.deferred or _State.came:
        _State.came = True
        with suppress(OSError):  # a terminal that has gone must not stop us
            os.write(2, _PATIENCE)
        return
    _State.came = True
    raise KeyboardInterrupt


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
    """Start a command in a session of its own that inherits no file of ours but those given.

    Its words are English ones, which mydyno reads.
    """
    given = {"env": {**os.environ, "LC_ALL": "C"}, **ways}
    with _forking:
        _reap()
        process = subprocess.Popen(argv, start_new_session=True, close_fds=True, **given)
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
        pids = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
        every = [found for pid in pids if (found := _look(pid))]
    us, session = os.getpid(), os.getsid(0)  # what a command started cannot be in our session
    ours = (p for p in every if p.parent == us and p.session != session and p.start >= since)
    strays = {p.pid for p in ours if p.pid not in known}
    # once it was reaped, its number may be that of a process which is not ours
    tree = strays | {p.pid for p in every if p.pid == leader and p.start == since}
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
    signal_same(one.pid, signal.SIGKILL, lambda: started_at(one.pid) == one.start)


def signal_same(pid: int, number: signal.Signals, same: Callable[[], bool]) -> None:
    """Signal a process if it is the `same`: what a descriptor stands for cannot become another."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        try:
            if same():
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def _reap() -> None:
    """Let strays go that have ended: somebody may wait for that."""
    with suppress(ChildProcessError):
        while found := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if found.si_pid in _started:
                return
            os.waitpid(found.si_pid, os.WNOHANG)


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


_CHUNK = 1 << 16
_POLL_STEP_S = 0.1
_LATE_S = 1.0  # output is read for so long after the end of a command
_MOST = 1 << 30  # bytes of output of a command: a list of all files of a large data set


@dataclass(slots=True)
class LocalRunning:
    """A child process in its own session; all processes that it starts end with it."""

    _process: "subprocess.Popen[bytes]"
    _since: int = field(init=False)

    def __post_init__(self) -> None:
        """Note its start time: older processes are not its children."""
        self._since = started_at(self._process.pid)

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
        try:
            code = self._process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired as error:
            raise HostError(
                f"process {self._process.pid} was killed and does not end: its disk does not answer"
            ) from error
        end(self._process.pid, self._since)
        return code

    def _raw(self, descriptor: int) -> Iterator[bytes]:
        """Yield what is written, until the end of the output or of the process."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN | select.POLLHUP)
        end_s = float("inf")
        while time.monotonic() < end_s:
            if poll.poll(_POLL_STEP_S * 1000):
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
                process = spawn(action.argv, stdin=given, stdout=out, stderr=errors)
            except FileNotFoundError as error:
                raise HostError(_missing(action)) from error
            try:
                _await(process, action, timeout_s, (out, errors))
            finally:
                if process.poll() is None:
                    with suppress(ProcessLookupError):
                        os.killpg(process.pid, signal.SIGKILL)
                    with suppress(
                        subprocess.TimeoutExpired
                    ):  # a hung disk: others must be restored
                        process.wait(_PATIENCE_S)
            return Completed(action, process.returncode, _all(out), _all(errors))

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command in a session of its own."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        errors = os.open(stderr or os.devnull, flags, 0o600)
        try:
            process = spawn(
                action.argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors
            )
        except FileNotFoundError as error:
            raise HostError(_missing(action)) from error
        finally:
            os.close(errors)
        return LocalRunning(process)

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file with its mode, atomically."""
        raw = local.read_bytes()  # where there is no file, no part of one is left either
        with tempfile.NamedTemporaryFile(dir=remote.parent, delete=False) as part:
            part.write(raw)
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
        while not ended.poll(_POLL_STEP_S * 1000):
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


_PLACE = Path("/run/netns")  # where `ip netns` keeps them


@dataclass(frozen=True, slots=True)
class Namespaced:
    """A host whose commands see only the network of one of its namespaces; needs root."""

    outer: Host
    namespace: str

    @property
    def name(self) -> str:
        """Return the name of the host."""
        return self.outer.name

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command inside."""
        return self.outer.run(self._inside(action), timeout_s=timeout_s)

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command inside; `nsenter` is replaced by it, so the pid is the command's."""
        return self.outer.start(self._inside(action), stderr=stderr)

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file to the host."""
        self.outer.push(local, remote)

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file from the host."""
        self.outer.pull(remote, local)

    def _inside(self, action: Action) -> Action:
        if self.outer.run(Action(("which", action.argv[0]))).returncode:
            raise HostError(_missing(action))
        enter = ("nsenter", f"--net={_PLACE / self.namespace}", "--")
        return Action((*enter, *action.argv), action.stdin)
