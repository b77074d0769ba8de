"""The protocol of a load generator."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from mydyno.host import LONGEST_LINE, Host
from mydyno.model import Action, Interval, Overhead, SpecError, unknown_value


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


@dataclass(frozen=True, slots=True)
class WorkloadInfo:
    """What identifies a workload: `name` is its cell's in the journal, ``rw/16``.

    `response` is the metric that decides.  Cells with the same `data_key` share one snapshot; it is
    empty where the load makes its own data.  With `needs_server` the target is a server rather than
    files.  In a `closed_loop` each thread waits for its reply before the next request, so that a
    stall is met once by each thread and no more.
    """

    name: str
    response: str = "tps"
    data_key: str = ""
    needs_server: bool = False
    closed_loop: bool = False

    def at(self, threads: int) -> "WorkloadInfo":
        """Return what identifies the workload's cell of so many threads: ``rw/16``."""
        return replace(self, name=f"{self.name}/{threads}")


class Workload(Protocol):
    """A load generator with its options fixed, except its target."""

    @property
    def info(self) -> WorkloadInfo:
        """Return what identifies it."""
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

    def describe(self) -> Sequence[Action]:
        """Return commands whose output names the tool's version and client library."""
        ...


@runtime_checkable
class Checkable(Protocol):
    """A load that can ask its tool about its options before anything is made."""

    def check(self, host: Host) -> None:
        """Raise `SpecError` in the tool's own words if the tool on `host` does not take them."""
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


def prefix(env: Mapping[str, str], *, directory: Path | None = None) -> tuple[str, ...]:
    """Return ``env …``: the treatment's variables, then the C locale that our parsers read.

    With `directory` the command starts there.
    """
    place = ("-C", str(directory)) if directory else ()
    return ("env", *place, *(f"{name}={value}" for name, value in env.items()), "LC_ALL=C")


_SHOWN = 160  # characters of a bad line that a person can still read


def numbered(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """Yield the number and bytes of each complete line that is not blank.

    A line without its newline is the torn end of a tool that was killed, and is left out.
    Raises `ValueError` for one of more than `LONGEST_LINE` bytes.
    """
    for number, line in enumerate(lines, start=1):
        if len(line) > LONGEST_LINE or (len(line) == LONGEST_LINE and not line.endswith(b"\n")):
            raise ValueError(
                f"line {number}: is longer than {LONGEST_LINE} bytes; print one report a line"
            )
        if line.endswith(b"\n") and line.strip():
            yield number, line


def text_lines(lines: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the number and text of each line that `numbered` yields."""
    for number, line in numbered(lines):
        yield number, line.decode(errors="replace").rstrip("\r\n")


def no_report(tool: str, number: int, text: str, why: str = "") -> ValueError:
    """Return the error for a line that cannot be a report of `tool`, with its number and text."""
    reason = f" ({why})" if why else ""
    return ValueError(f"line {number} is no report of {tool}{reason}: {text[:_SHOWN]!r}")


def failure(tool: str, text: str, following: Iterator[tuple[int, str]]) -> ValueError:
    """Return the error for a tool's own complaint and the line after it, which has the details."""
    _, more = next(following, (0, ""))
    return ValueError(f"{tool}: {text}; {more}" if more else f"{tool}: {text}")


Options = Mapping[str, str | int | float | bool]


def normal(options: Options) -> dict[str, str | int | float | bool]:
    """Return the options with underscores in their names, as ``file_rw_ratio``."""
    return {name.replace("-", "_"): value for name, value in options.items()}


def check_names(options: Options, known: Collection[str], place: str) -> None:
    """Raise `SpecError` at `place` for a name that is not known, with the nearest one that is."""
    for name in normal(options):
        if name not in known:
            problem = unknown_value(name, known, "option", listed=False)
            own = "" if "did you mean" in problem else ", or one that mydyno sets itself; remove it"
            raise SpecError(f"{place}.{name}: {problem}{own}")


def check_range(place: str, value: float, low: float, high: float) -> None:
    """Raise `SpecError` at `place` unless `low` <= `value` <= `high`."""
    if not low <= value <= high:
        raise SpecError(f"{place} = {value:g}: must be from {low:g} to {high:g}")


def check_response(place: str, response: str, metrics: Collection[str]) -> None:
    """Raise `SpecError` at `place` unless the tool reports a metric of the name `response`."""
    if response not in metrics:
        raise SpecError(f"{place}.response = {response!r}: must be one of {', '.join(metrics)}")


def thread_counts(place: str, threads: int | list[int]) -> list[int]:
    """Return the thread counts, each once; raise `SpecError` at `place` if they make no sense."""
    counts = [threads] if isinstance(threads, int) else threads
    for count in counts:
        check_range(f"{place}.threads", count, 1, 65536)
    if not counts or len(set(counts)) < len(counts):
        raise SpecError(f"{place}.threads = {counts}: give each count once, and at least one")
    return counts


def words(options: Options, on: str, off: str) -> tuple[str, ...]:
    """Return ``--name=value`` for each option; true and false are spelt `on` and `off`."""
    spelt = {True: on, False: off}
    return tuple(
        f"--{name}={spelt[value] if isinstance(value, bool) else value}"
        for name, value in sorted(options.items())
    )
