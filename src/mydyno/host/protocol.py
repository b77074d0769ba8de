"""What a host can do: run a command, keep one running, move files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar, runtime_checkable

from mydyno.model import Action, HostError, Probe, UnknownEndError

T = TypeVar("T")
LONGEST_LINE = 1 << 20  # bytes: a report of a second with its histogram is a few thousand
_SHOWN = 400  # characters of a tool's error output that are shown


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended."""

    action: Action
    returncode: int
    stdout: bytes
    stderr: bytes

    def check(self) -> "Completed":
        """Return self, or raise `HostError` with the command's error output if it failed."""
        if self.returncode:
            words = (self.stderr or self.stdout).decode(errors="replace").strip()[-_SHOWN:]
            name = " ".join(self.action.argv[:3])
            raise HostError(f"{name}: exit {self.returncode}: {words}")
        return self


class Running(Protocol):
    """A command running in the background, in a process group of its own."""

    @property
    def pid(self) -> int:
        """Return its process id."""
        ...

    def lines(self) -> Iterator[bytes]:
        """Yield each line of its standard output as it arrives, until it ends or is stopped.

        A line of more than `LONGEST_LINE` bytes is yielded in pieces, to limit memory.
        """
        ...

    def returncode(self) -> int | None:
        """Return its exit code, negative for a signal, or None while it runs."""
        ...

    def stop(self, *, grace_s: float = 10.0) -> int:
        """Send SIGTERM, then SIGKILL after `grace_s`, to its group; return the exit code."""
        ...


def halt(running: Running, *, grace_s: float = 10.0) -> None:
    """Stop a command as `Running.stop`, and read what it printed to the end: the pipe closes."""
    running.stop(grace_s=grace_s)
    for _ in running.lines():
        pass


class Host(Protocol):
    """A machine that can run commands and exchange files."""

    @property
    def name(self) -> str:
        """Return the name used in reports and the journal."""
        ...

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command to its end; raise `HostError` only if its result is unknown."""
        ...

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command in the background; standard error goes to the host's file `stderr`."""
        ...

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file to the host with its mode, atomically."""
        ...

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file from the host, atomically."""
        ...


@runtime_checkable
class Remote(Protocol):
    """A host without access to the local files; its folders exist as long as its session."""

    def folder(self) -> Path:
        """Return a folder on the host for uploads; it is removed with the session."""
        ...

    def run_folder(self) -> Path:
        """Return the folder of locks on the host, as mydyno there would choose it."""
        ...

    def addresses(self) -> tuple[str, str]:
        """Return the local address as the host sees it, and the host's address."""
        ...


def ask(host: Host, probe: Probe[T], *, timeout_s: float = 60.0) -> T:
    """Return the parsed reply to a probe; raise `HostError` if its command fails.

    A probe changes nothing, so it is repeated once if its reply was lost with the connection.
    """
    try:
        done = host.run(probe.action, timeout_s=timeout_s)
    except UnknownEndError:
        done = host.run(probe.action, timeout_s=timeout_s)
    return probe.parse(done.check().stdout)


@runtime_checkable
class Rebootable(Protocol):
    """A host that mydyno may reboot: a VM lab, never a host of the user."""

    def reboot(self, release: str = "") -> None:
        """Boot a kernel, named by its release or the beginning of one; return when it answers.

        Raise `SpecError` for a kernel that it does not have, `HostError` if it does not come up.
        """
        ...
