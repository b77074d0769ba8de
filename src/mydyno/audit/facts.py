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
from mydyno.audit.host_facts import listed, of_host, plain
from mydyno.audit.memory import Get, Memory, getter, memory_of
from mydyno.audit.option_files import Option, every, groups, number, written
from mydyno.stack.flavours import known_as

Version = tuple[int, ...]


class ServerEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was read of a server, as it was printed; nothing is judged.

    `origins` maps a variable to where its value comes from, as the server reports it.  `looks` are
    the status at the begin and at the end of `seconds`; `running` is ``Threads_running`` of each
    second between.  `files` are option files by path, `start` those that are read first.  `host`
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
    start: tuple[str, ...] = ()
    files: dict[str, str] = msgspec.field(default_factory=dict)
    host: dict[str, str] = msgspec.field(default_factory=dict)
    peaks: dict[str, float] = msgspec.field(default_factory=dict)
    peak_s: float = 0.0
    problems: tuple[str, ...] = ()

    def options(self) -> list[Option]:
        """Return what the option files set for this server, in the order of reading."""
        return every(self.start, self.files, groups(self.flavour, self.version))


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
_DIFFER = {"ignored": {""}, "changed": {_DYNAMIC, _COMMAND_LINE}, "persisted": {_PERSISTED}}
_REQUESTS = ("com_select", "com_insert", "com_update", "com_delete", "com_replace")
_QUANTILE = 0.999


def facts(seen: ServerEvidence) -> ServerFacts:
    """Return the facts; what cannot be known has no name in them."""
    values: dict[str, Value] = {f"var.{k}": plain(v) for k, v in seen.variables.items()}
    values |= _levels(seen)
    options = seen.options()
    last = {option.name: option for option in options}
    values |= {f"file.{name}": plain(option.value) for name, option in last.items()}
    values |= of_host(seen.host)
    values |= _derived(seen, values)
    values |= _removed(seen.flavour, last)
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
    for name, peak in seen.peaks.items():
        now = found.get(f"rate.{name}", 0.0)
        found[f"rate.{name}"] = max(peak, now) if isinstance(now, float) else peak
    return found


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
    }
    for name, (part, entire) in _SHARES.items():
        above, below = get(part), get(entire)
        found[f"fact.{name}"] = above / below if above is not None and below else None
    if seen.running:
        ranked = sorted(max(0.0, n - 1) for n in seen.running)  # one of them is this look
        found["fact.running"] = ranked[len(ranked) // 2]
        found["fact.running_peak"] = ranked[min(len(ranked) - 1, int(_QUANTILE * len(ranked)))]
    return {name: value for name, value in found.items() if value is not None}


def _redo(get: Get) -> float | None:
    size = get("var.innodb_log_file_size")
    files = get("var.innodb_log_files_in_group") or 1.0
    return get("var.innodb_redo_log_capacity") or (size * files if size else None)


def _read_share(get: Get) -> float | None:
    rates = [get(f"rate.{name}") or 0.0 for name in _REQUESTS]
    return rates[0] / sum(rates) if sum(rates) else None


def _removed(flavour: str, last: Mapping[str, Option]) -> dict[str, Value]:
    """Return which options in files a later release no longer knows."""
    table = tomllib.loads(files("mydyno.audit").joinpath("removed.toml").read_text())
    gone = {k: v for name in known_as(flavour) for k, v in table.get(name, {}).items()}
    dead = [f"{o.name} ({o.where}, removed in {gone[n]})" for n, o in last.items() if n in gone]
    return listed("dead", dead)


# share: its numerator and denominator
_SHARES = {
    "disk_tmp_share": ("rate.created_tmp_disk_tables", "rate.created_tmp_tables"),
    "miss_share": ("rate.innodb_buffer_pool_reads", "rate.innodb_buffer_pool_read_requests"),
    "pool_free_share": (
        "status.innodb_buffer_pool_pages_free",
        "status.innodb_buffer_pool_pages_total",
    ),
    "dirty_share": (
        "status.innodb_buffer_pool_pages_dirty",
        "status.innodb_buffer_pool_pages_total",
    ),
    "thread_miss_share": ("rate.threads_created", "rate.connections"),
    "binlog_spill_share": ("rate.binlog_cache_disk_use", "rate.binlog_cache_use"),
    "table_miss_share": ("rate.table_open_cache_misses", "rate.table_open_cache_hits"),
}

_BY = {"dynamic": _DYNAMIC, "command_line": _COMMAND_LINE, "persisted": _PERSISTED}


def _differences(seen: ServerEvidence, last: Mapping[str, Option]) -> Sequence[Difference]:
    found = []
    for name, option in last.items():
        present = seen.variables.get(name)
        if present is None or same(name, option.value, present):
            continue
        origin = seen.origins.get(name, ("", ""))[0]
        by = _BY.get(origin, "")
        found.append(Difference(name, option.value, present, option.where, by))
    return found


_ROUNDED_UP = {"innodb_buffer_pool_size", "innodb_redo_log_capacity"}
_SIZES, _BLOCK = ("_size", "_capacity", "_packet", "_length"), 4096.0  # rounded to blocks


def same(name: str, wanted: str, present: str) -> bool:
    """Return whether a value in a file is the one in force; what is neither number nor word is."""
    left, right = number(wanted), number(present)
    if left is None and right is None:
        word = re.fullmatch(r"[\w-]+", wanted) and re.fullmatch(r"[\w-]+", present)
        return not word or wanted.lower() == present.lower()
    if left is None or right is None:  # a name that stands for ON, a number that has a name
        return True
    if name in _ROUNDED_UP and right >= left:
        return True
    rounded = max(0.02 * abs(left), _BLOCK) if name.endswith(_SIZES) and left > _BLOCK else 0.0
    return abs(left - right) <= rounded


def _shown(one: Difference) -> str:
    by = f", {one.by}" if one.by else ""
    present = number(one.present) if one.present.isdigit() else None
    size = written(present) if present else one.present
    return f"{one.where} sets {one.name} = {one.wanted}, in force is {size}{by}"
