"""What is known of a server and its host, by the names that rules may use.

``var.`` variables · ``status.`` counters and levels · ``rate.`` counters a second, while it was
watched · ``file.`` option files · ``fact.`` what follows from these · ``host.`` ``sysctl.`` the
machine · ``disk.`` ``mount.`` below the data · ``limit.`` ``process.`` the server's process.
Units are base units: bytes, seconds, per second, shares from 0 to 1.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files

import msgspec

from mydyno.audit.expression import Value
from mydyno.audit.host_facts import allocator, listed, of_host, plain
from mydyno.audit.memory import Get, Memory, getter, memory_of
from mydyno.audit.option_files import Option, every, groups, number, written
from mydyno.stack.flavours import known_as
from mydyno.stack.known import granted

Version = tuple[int, ...]


class ServerEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a server, as it was printed; nothing is judged.

    `origins` maps a variable to where its value comes from, as the server reports it.  `looks` are
    the status at the begin and at the end of `seconds`; `running` is ``Threads_running`` of each
    second between.  `suffix` is that of the groups of option files that it reads as well.  `files`
    are option files by path, `start` those that are read first.  `host`
    holds the output of each of the host's commands by name; it is empty for a server of which only
    SQL is known.  `peaks` are rates of counters in
    the fastest hour of `peak_s` seconds of history.  `problems` are what could not be read, with
    the reason.
    """

    name: str
    flavour: str
    version: Version
    text: str
    variables: dict[str, str]
    looks: tuple[dict[str, str], dict[str, str]]
    seconds: float = 0.0
    running: tuple[float, ...] = ()
    origins: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    replica: dict[str, str] = msgspec.field(default_factory=dict)
    data_bytes: float | None = None
    suffix: str = ""
    start: tuple[str, ...] = ()
    files: dict[str, str] = msgspec.field(default_factory=dict)
    host: dict[str, str] = msgspec.field(default_factory=dict)
    peaks: dict[str, float] = msgspec.field(default_factory=dict)
    peak_s: float = 0.0
    problems: tuple[str, ...] = ()

    def options(self) -> list[Option]:
        """Return what the option files set for this server, in the order of reading."""
        return every(self.start, self.files, groups(self.flavour, self.version, self.suffix))


@dataclass(frozen=True, slots=True)
class ServerFacts:
    """The values by name, where each variable is set, and the memory."""

    values: Mapping[str, Value]
    options: Sequence[Option]
    where: Mapping[str, str]
    memory: Memory


@dataclass(frozen=True, slots=True)
class Difference:
    """A variable whose value in an option file is not the one in force."""

    name: str
    wanted: str
    present: str
    where: str
    by: str  # what set the present one: "command line", "at run time", "" for the server itself


_DYNAMIC, _COMMAND_LINE = "changed at run time", "overridden on the command line"
_PERSISTED = "overridden by SET PERSIST"
# before MySQL 8.0 a server does not show which
_UNKNOWN = "changed at run time, or limited by the server"
_CHANGED = {_DYNAMIC, _COMMAND_LINE, _UNKNOWN}
_DIFFER = {"ignored": {""}, "changed": _CHANGED, "persisted": {_PERSISTED}}
_REQUESTS = ("com_select", "com_insert", "com_update", "com_delete", "com_replace")
_QUANTILE = 0.999


def facts(seen: ServerEvidence) -> ServerFacts:
    """Return the facts; what cannot be known has no name in them."""
    values: dict[str, Value] = {f"var.{k}": plain(v) for k, v in seen.variables.items()}
    values |= _levels(seen)
    values |= _shares(getter(values))
    values |= _peaks(seen, values)
    options = seen.options()
    last = {option.name: option for option in options}
    values |= {f"file.{name}": plain(option.value) for name, option in last.items()}
    values |= of_host(seen.host)
    if name := allocator(seen.host, seen.variables):
        values["process.allocator"] = name
    values |= _derived(seen, values)
    values |= _removed(seen, {one.name: one for one in options if not one.loose})
    differences = _differences(seen, last)
    for kind, by in _DIFFER.items():
        values |= listed(kind, [_shown(one) for one in differences if one.by in by])
    memory = memory_of(seen.flavour, values)
    values |= {f"memory.{name}": size for name, size in memory.known.items()}
    return ServerFacts(values, options, _places(seen, last), memory)


def _levels(seen: ServerEvidence) -> dict[str, Value]:
    """Return the status as levels, and as rates where it was watched."""
    before, after = ({k.lower(): number(v) for k, v in look.items()} for look in seen.looks)
    found: dict[str, Value] = {}
    for name, level in after.items():
        if level is None:
            continue
        found[f"status.{name}"] = level
        if (rate := _rate(before.get(name), level, seen.seconds)) is not None:
            found[f"rate.{name}"] = rate
    return found


def _shares(get: Get) -> dict[str, Value]:
    """Return shares of rates of the same time: peaks are each of an hour of its own."""
    pairs = {name: (get(part), get(entire)) for name, (part, entire) in _SHARES.items()}
    return {
        f"fact.{name}": part / entire
        for name, (part, entire) in pairs.items()
        if part is not None and entire
    }


def _peaks(seen: ServerEvidence, values: Mapping[str, Value]) -> dict[str, Value]:
    """Return the rates of the fastest hour, or of the watch where that was faster."""
    get = getter(values)
    return {
        f"rate.{name}": max(peak, get(f"rate.{name}") or 0.0) for name, peak in seen.peaks.items()
    }


def _places(seen: ServerEvidence, last: Mapping[str, Option]) -> dict[str, str]:
    """Return where each setting that is not a default comes from."""
    found = {name: option.where for name, option in last.items()}
    for name, (origin, path) in seen.origins.items():
        if origin == "dynamic":
            found[name] = "set at run time"
        elif origin == "command_line" and name not in found:
            found[name] = "command line"
        elif origin == "persisted":
            found[name] = path or "mysqld-auto.cnf"
    return found


def _rate(before: float | None, after: float, seconds: float) -> float | None:
    """Return a counter's rate; None for one that was reset."""
    if before is None or seconds <= 0 or after < before:
        return None
    return (after - before) / seconds


def _derived(seen: ServerEvidence, values: Mapping[str, Value]) -> dict[str, Value]:
    get = getter(values)
    found: dict[str, float | None] = {
        "fact.watched": max(seen.seconds, seen.peak_s),
        "fact.uptime": get("status.uptime"),
        "fact.data": seen.data_bytes or number(seen.host.get("data", "")) or None,
        "fact.redo": _redo(get),
        "fact.read_share": _read_share(get),
        "fact.replica": 1.0 if any("io_running" in key for key in seen.replica) else None,
        "fact.gtid_position": _by_gtid(seen.replica),
    }
    if seen.running:
        ranked = sorted(max(0.0, n - 1) for n in seen.running)  # one of them is this look
        found["fact.running_peak"] = ranked[min(len(ranked) - 1, int(_QUANTILE * len(ranked)))]
    return {name: value for name, value in found.items() if value is not None}


def _redo(get: Get) -> float | None:
    """Return the redo log's size; MySQL shows another capacity where it follows the old options."""
    size = get("var.innodb_log_file_size")
    files = get("var.innodb_log_files_in_group") or 1.0
    capacity = get("status.innodb_redo_log_capacity_resized") or get("var.innodb_redo_log_capacity")
    return capacity or (size * files if size else None)


def _by_gtid(replica: Mapping[str, str]) -> float | None:
    """Return 1 where each channel finds its position by GTID: its relay log is read again."""
    found = [v.lower() for k, v in replica.items() if k.endswith(("auto_position", "using_gtid"))]
    return 1.0 if found and not {"", "0", "no"} & {*found} else None


def _read_share(get: Get) -> float | None:
    rates = [get(f"rate.{name}") or 0.0 for name in _REQUESTS]
    return rates[0] / sum(rates) if sum(rates) else None


def _removed(seen: ServerEvidence, last: Mapping[str, Option]) -> dict[str, Value]:
    """Return which options in files a later release no longer knows."""
    table = tomllib.loads(files("mydyno.audit").joinpath("removed.toml").read_text())
    every_gone = {k: v for name in known_as(seen.flavour) for k, v in table.get(name, {}).items()}
    gone = {k: v for k, v in every_gone.items() if (*map(int, v.split(".")),) > seen.version[:2]}
    dead = [f"{o.name} ({o.where}, removed in {gone[n]})" for n, o in last.items() if n in gone]
    return listed("dead", dead)


# share: its numerator and denominator
_SHARES = {
    "disk_tmp_share": ("rate.created_tmp_disk_tables", "rate.created_tmp_tables"),
    "pool_free_share": (
        "status.innodb_buffer_pool_pages_free",
        "status.innodb_buffer_pool_pages_total",
    ),
    "binlog_spill_share": ("rate.binlog_cache_disk_use", "rate.binlog_cache_use"),
}

_BY = {"dynamic": _DYNAMIC, "command_line": _COMMAND_LINE, "persisted": _PERSISTED}


def _differences(seen: ServerEvidence, last: Mapping[str, Option]) -> Sequence[Difference]:
    found = []
    for name, option in last.items():
        present = seen.variables.get(name)
        if present is None or _same(name, option.value, present, seen.variables):
            continue
        origin = seen.origins.get(name, ("", ""))[0]
        by = _BY.get(origin, "") if seen.origins else _UNKNOWN
        found.append(Difference(name, option.value, present, option.where, by))
    return found


_SIZES, _BLOCK = ("_size", "log_capacity", "_packet", "_length"), 4096.0  # rounded to blocks
_AT_LEAST = {"open_files_limit"}  # what the process may open anyway is not lowered
_UTF8 = re.compile(r"^utf8(?=_|$)")  # the old name of utf8mb3


def _same(name: str, wanted: str, present: str, variables: Mapping[str, str]) -> bool:
    """Return whether a value in a file is the one in force; what is neither number nor word is."""
    left, right = number(wanted), number(present)
    if left is None and right is None:
        words = [_UTF8.sub("utf8mb3", text.lower()) for text in (wanted, present)]
        return not all(re.fullmatch(r"[\w-]+", word) for word in words) or words[0] == words[1]
    if left is None or right is None:  # a name that stands for ON, a number that has a name
        return True
    if granted(name, variables, wanted):
        return True  # rounded up to chunks
    if name in _AT_LEAST:
        return right >= left
    rounded = max(0.02 * abs(left), _BLOCK) if name.endswith(_SIZES) and left > _BLOCK else 0.0
    return abs(left - right) <= rounded


def _shown(one: Difference) -> str:
    by = f", {one.by}" if one.by else ""
    present = number(one.present) if one.present.isdigit() else None
    size = written(present) if present else one.present
    return f"{one.where} sets {one.name} = {one.wanted}, in force is {size}{by}"
