"""What a host can do: run a command, keep one running, move files."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from mydyno.model import Action, HostError, Probe

T = TypeVar("T")
_SHOWN = 400  # characters of a tool's complaint that a person can still read


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended."""

    action: Action
    returncode: int
    stdout: bytes
    stderr: bytes

    def check(self) -> "Completed":
        """Return self, or raise `HostError` with the command's last words if it failed."""
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
        """Yield each line of its standard output as it comes, until it ends or is stopped."""
        ...

    def returncode(self) -> int | None:
        """Return its exit code, negative for a signal, or None while it runs."""
        ...

    def stop(self, *, grace_s: float = 10.0) -> int:
        """Send SIGTERM, then SIGKILL after `grace_s`, to its group; return the exit code."""
        ...


class Host(Protocol):
    """A machine that can run commands and exchange files."""

    @property
    def name(self) -> str:
        """Return the name used in reports and the journal."""
        ...

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command to its end; raise `HostError` only if that end is not known."""
        ...

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command in the background; its standard error goes to `stderr` or nowhere."""
        ...

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file to the host, whole or not at all."""
        ...

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file from the host."""
        ...


def ask(host: Host, probe: Probe[T], *, timeout_s: float = 60.0) -> T:
    """Return what a probe's reply means; raise `HostError` if its command fails."""
    return probe.parse(host.run(probe.action, timeout_s=timeout_s).check().stdout)
