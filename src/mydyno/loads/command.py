"""Any program as a load: it prints one JSON object a line, and mydyno reads them as they come."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from mydyno.loads.histogram import checked
from mydyno.loads.protocol import Reports, Target, WorkloadInfo, numbered, prefix
from mydyno.model import Action, Interval, Overhead

_SHOWN = 120  # characters of a bad line that help to find it
_LONGEST_S = 30 * 86400.0  # a trial of a month: what is beyond is a wrong unit, ms or ns
_MOST = 1_000_000  # numbers of one trial that are held in memory, at some 100 bytes each
_SMALLEST, _LARGEST = 1e-30, 1e30  # squares and sums of such numbers are finite and not lost


class CommandParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of ``[workloads.X]`` with ``tool = "command"``.

    `server`: the program uses the server under test; it then gets a client option file, which
    holds all that a client needs, as ``MYDYNO_OPTION_FILE``, and the parts of the address as
    ``MYDYNO_SOCKET`` or ``MYDYNO_HOST`` and ``MYDYNO_PORT``, ``MYDYNO_USER`` and
    ``MYDYNO_DATABASE``.
    """

    argv: list[str]
    server: bool = False

    def __post_init__(self) -> None:
        if not self.argv:
            raise ValueError("argv is empty; name the program to run")


@dataclass(frozen=True, slots=True)
class Command:
    """A program of the user's own."""

    info: WorkloadInfo
    argv: tuple[str, ...]

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return nothing: the program makes its own data."""
        del target
        return ()

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return one run of the program, its environment as in `env` and else as ours."""
        del seed  # it reaches the program through `env`
        variables = {**_address(target), **env} if self.info.needs_server else env
        return Action((*prefix(variables), *self.argv))

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield what each line reports."""
        yield from parse(lines)

    def describe(self) -> Sequence[Action]:
        """Return nothing: only the program knows its version."""
        return ()


def cells(name: str, params: CommandParams, response: str | None) -> Sequence[Command]:
    """Return the one cell of a command workload."""
    info = WorkloadInfo(name, response or "tps", needs_server=params.server)
    return (Command(info, tuple(params.argv)),)


def _address(target: Target) -> Mapping[str, str]:
    port = str(target.tcp_port) if target.tcp_port else ""
    variables = {
        "MYDYNO_SOCKET": target.socket,
        "MYDYNO_HOST": target.tcp_host,
        "MYDYNO_PORT": port,
        "MYDYNO_USER": target.user,
        "MYDYNO_DATABASE": target.database,
        "MYDYNO_OPTION_FILE": str(target.password_file),
    }
    return {name: value for name, value in variables.items() if value}


def parse(lines: Iterable[bytes]) -> Iterator[Interval | Overhead]:
    """Yield what each line reports; raise `ValueError` for a line that is no report.

    A last line without an end is what a stopped program leaves behind, and is passed over.
    """
    last, numbers = 0.0, 0
    for number, line in numbered(lines):
        item = _item(line, number)
        if isinstance(item, Interval):
            if item.t_s <= last:
                raise ValueError(f"line {number}: t_s is {item.t_s:g} after {last:g}")
            last = item.t_s
            numbers += 1 + len(item.values)
        if numbers > _MOST:
            raise ValueError(
                f"line {number}: the program has reported more than {_MOST} numbers; "
                "report once a second"
            )
        yield item


def _item(line: bytes, number: int) -> Interval | Overhead:
    try:
        fields = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        shown = line.strip().decode(errors="replace")[:_SHOWN]
        raise ValueError(f"line {number}: not a JSON object: {shown!r}") from error
    if fields.get("event") == "overhead":
        return Overhead(_seconds(fields, "cost_s", number))
    if "event" in fields:
        raise ValueError(f"line {number}: unknown event {_short(fields['event'])}; known: overhead")
    histogram = fields.pop("latency_hist", "")
    if not isinstance(histogram, str):
        raise ValueError(f"line {number}: latency_hist is not a base64 string")  # noqa: TRY004
    if histogram and (problem := checked(histogram)):
        raise ValueError(f"line {number}: latency_hist: {problem}")
    t_s = _seconds(fields, "t_s", number)
    values = {key: _number(fields, key, number) for key in fields if key != "t_s"}
    return Interval(t_s, values, histogram)


def _seconds(fields: Mapping[str, object], key: str, number: int) -> float:
    """Return a length of time, which is neither below zero nor longer than any trial."""
    value = _number(fields, key, number)
    if not 0 <= value <= _LONGEST_S:
        raise ValueError(
            f"line {number}: {key} is {value:g}; give seconds since the load began, "
            f"from 0 to {_LONGEST_S:.0f}"
        )
    return value


def _number(fields: Mapping[str, object], key: str, number: int) -> float:
    value = fields.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(  # noqa: TRY004
            f"line {number}: {key[:_SHOWN]} is {_short(value)}, not a number"
        )
    if value and not _SMALLEST <= abs(value) <= _LARGEST:
        raise ValueError(
            f"line {number}: {key[:_SHOWN]} is {_short(value)}; report base units, "
            f"from {_SMALLEST:g} to {_LARGEST:g}"
        )
    return float(value)


def _short(value: object) -> str:
    """Return a value as Python shows it, as much as a person reads; a long integer by its size."""
    if isinstance(value, int) and value.bit_length() > _SHOWN:
        return f"an integer of {value.bit_length()} bits"
    if isinstance(value, list | dict):
        return f"a {type(value).__name__}"  # which may be too deep to be shown
    return repr(value)[:_SHOWN]
