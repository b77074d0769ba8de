"""The protocol of a load generator."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from mydyno.model import Action, Interval, Overhead


@dataclass(frozen=True, slots=True)
class Target:
    """The target of a load: a server's address, or a directory, or neither.

    `socket` is empty when the transport is TCP.  `password_file` is a client option file
    (``[client]`` with user and password, mode 0600); a password is never in an argv.
    `directory` is where file loads put their files; `work` is for the tool's own small files.
    """

    work: Path
    directory: Path
    socket: str = ""
    tcp_host: str = ""
    tcp_port: int = 0
    user: str = ""
    password_file: Path = Path()
    database: str = ""


Reports = Iterator[Interval | Overhead]


class Workload(Protocol):
    """A load generator with its options fixed, except its target."""

    @property
    def name(self) -> str:
        """Return the cell's name as the journal knows it: ``rw/16``."""
        ...

    @property
    def response(self) -> str:
        """Return the metric the tool is decided on unless the spec names another: `tps`, `iops`."""
        ...

    @property
    def data_key(self) -> str:
        """Return what its data set depends on; cells with the same key share one snapshot."""
        ...

    @property
    def needs_server(self) -> bool:
        """Return whether its target is a server rather than files or something of its own."""
        ...

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that make the data set, in order."""
        ...

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return the command of one run of the load; it goes on until stopped by SIGTERM."""
        ...

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield what the load's lines report, while they come.

        Raises `ValueError` on output that cannot be a report, naming the line.
        """
        ...

    def describe(self, target: Target) -> Sequence[Action]:
        """Return commands whose output names the tool's version and client library."""
        ...


@runtime_checkable
class MayWait(Protocol):
    """A load that may be a closed loop: each thread waits for its reply before the next request."""

    @property
    def closed_loop(self) -> bool:
        """Return whether it is one, so that a stall is met once by each thread and no more."""
        ...


@runtime_checkable
class Verifies(Protocol):
    """A load whose data must satisfy conditions, whatever it did and however it was stopped."""

    def verify(self, target: Target, seed: int) -> Sequence[Action]:
        """Return commands to run after the load; a failed one names the violation."""
        ...


@runtime_checkable
class ReportsTotals(Protocol):
    """A load whose output ends with totals of the entire run."""

    def totals(self, lines: Iterable[bytes]) -> Mapping[str, float]:
        """Return that, by metric in base units: exact where intervals were rounded."""
        ...


@runtime_checkable
class ReportsSession(Protocol):
    """A load that reports its session: cipher, client library, versions."""

    def session(self, lines: Iterable[bytes]) -> Mapping[str, str]:
        """Return what the first connection reported, empty if nothing."""
        ...
