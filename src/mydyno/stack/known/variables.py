"""The variables of a running server, and validation of wanted settings against them."""

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from mydyno.model import Action, Probe, Settings, unknown_value
from mydyno.stack.flavours import known_as, quirks
from mydyno.stack.known import normalise


def replacement(flavour: str, key: str) -> str:
    """Return what to set instead of an unknown variable, in words; empty when nothing is known.

    To be asked only for a name that the running server does not show, so no version is needed.
    """
    if key.startswith("loose_"):
        return "a loose_ prefix hides mistakes: name the variable itself, per server by `when`"
    entry = _table().get(key, {})
    names = (*known_as(flavour), "any")
    return next((entry[name] for name in names if name in entry), "")


@cache
def _table() -> dict[str, dict[str, str]]:
    text = resources.files("mydyno.stack.known").joinpath("replaced.toml").read_text("utf-8")
    return tomllib.loads(text)


RENAMED = {"tx_isolation": "transaction_isolation", "tx_read_only": "transaction_read_only"}
"""Older servers show these names, yet their option files take only the newer ones.

Source: docs/reference/method.md.
"""

PLACE = frozenset(
    (
        "admin_address",
        "admin_port",
        "basedir",
        "bind_address",
        "datadir",
        "extra_port",
        "general_log_file",
        "log_error",
        "mysqlx",
        "mysqlx_port",
        "mysqlx_socket",
        "pid_file",
        "plugin_dir",
        "port",
        "secure_file_priv",
        "skip_networking",
        "socket",
        "ssl_cert",
        "ssl_key",
        "tmpdir",
        "user",
    )
)
"""Variables of where an instance lives; those are mydyno's to set."""

UPPER = {"innodb_io_capacity": "innodb_io_capacity_max"}
LOWER = {"innodb_max_dirty_pages_pct": "innodb_max_dirty_pages_pct_lwm"}
COMPANIONS = {**UPPER, **LOWER}
"""Variables whose bound the server moves along with them, and does not move back."""

AT_ONCE = frozenset(
    (
        "binlog_group_commit_sync_delay",
        "binlog_order_commits",
        "binlog_row_image",
        "eq_range_index_dive_limit",
        "general_log",
        "histogram_size",
        "innodb_flush_log_at_trx_commit",
        "innodb_flush_neighbors",
        "innodb_flush_sync",
        "innodb_lock_wait_timeout",
        "innodb_log_checksums",
        "innodb_log_spin_cpu_abs_lwm",
        "innodb_log_wait_for_flush_spin_hwm",
        "innodb_spin_wait_delay",
        "innodb_sync_spin_loops",
        "innodb_thread_concurrency",
        "innodb_thread_sleep_delay",
        "join_buffer_size",
        "log_queries_not_using_indexes",
        "log_slow_rate_limit",
        "log_slow_verbosity",
        "long_query_time",
        "max_heap_table_size",
        "mrr_buffer_size",
        "net_buffer_length",
        "optimizer_prune_level",
        "optimizer_search_depth",
        "optimizer_switch",
        "range_alloc_block_size",
        "read_buffer_size",
        "read_rnd_buffer_size",
        "slow_query_log",
        "sort_buffer_size",
        "sync_binlog",
        "thread_pool_size",
        "tmp_memory_table_size",
        "tmp_table_size",
        "transaction_isolation",
        "tx_isolation",
        "userstat",
    )
)
"""Dynamic variables whose effect is complete within seconds: no cache fills, no log wraps.

New sessions see those of a session.  Not here, though dynamic: sizes of pools and logs, the
adaptive hash index, capacities of flushing.  Source: the manuals of MySQL and MariaDB.
"""

_INTEGER = re.compile(r"-?\d+")
_NUMBER = re.compile(r"-?\d+(\.\d+)?")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
# assigning these their own value would start something, or cannot mean nothing
_ACTING = re.compile(r"_now$|_abort$|^gtid_|_purged$|monitor_|^debug|^keyring_|^offline_mode$")
_UNLISTED = re.compile(r"log_bin(_index)?|binlog_(do|ignore)_db|relay_log_index")
# MySQL takes some of their values online and refuses others
_HALF_DYNAMIC = frozenset(("innodb_doublewrite", "gtid_mode", "enforce_gtid_consistency"))
# How servers word it: MySQL 5.6 and 8.0, MariaDB 10.11 and 11.4.
_REJECTED = re.compile(
    r"option '(?P<adjusted>[\w-]+)': \w* ?value \S+ adjusted to (?P<limit>\S+?)\.?$"
    r"|Unknown suffix '.*' used for variable '(?P<suffix>[\w-]+)'"
    r"|Error while setting value '.*' to '(?P<wrong>[\w-]+)'"
    r"|ignoring option '--(?P<ignored>[\w-]+)' due to invalid value"
    r"|Option --(?P<set>[\w-]+).* is set to an invalid value"
)
_READ_ONLY, _NO_SUCH = "1238", "1193"  # ER_INCORRECT_GLOBAL_LOCAL_VAR, ER_UNKNOWN_SYSTEM_VARIABLE


@dataclass(frozen=True, slots=True)
class Variable:
    """One variable: `low` and `high` bound numbers, `choices` words; None and empty mean unknown.

    `settable` is False where the server takes it neither from an option file nor from SET.
    """

    dynamic: bool = False
    low: float | None = None
    high: float | None = None
    step: int = 1
    choices: tuple[str, ...] = ()
    settable: bool = True


def describe(
    client: tuple[str, ...], flavour: str, version: tuple[int, ...], stock: Settings
) -> Probe[Mapping[str, Variable]]:
    """Return the question for the variables named in `stock`, for a private instance only.

    MariaDB lists range, words and read-only in a table.  MySQL 8 lists ranges; which of its
    variables are dynamic is found by assigning each its own value, as `Variable 'x' is a read
    only variable` is the only place where it shows that.  MySQL 5 has no ranges.
    """
    names = sorted(name for name in stock if _NAME.fullmatch(name))
    known = quirks(flavour, version)
    if known.lists_variables:
        return Probe(Action(client, _SYSTEM_VARIABLES), parse_system_variables)
    ranges = _RANGES if known.look.ranges else b""
    tried = [name for name in names if not _ACTING.search(name)]
    trial = "".join(f"SET GLOBAL {name} = @@GLOBAL.{name}; SHOW ERRORS;\n" for name in tried)
    question = Action((*client, "--force"), ranges + trial.encode())
    return Probe(question, lambda raw: parse_tried(raw, names, tried))


def parse_system_variables(raw: bytes) -> dict[str, Variable]:
    """Return the variables in MariaDB's SYSTEM_VARIABLES, as `describe` asks for them."""
    found = {}
    for line in raw.decode(errors="replace").splitlines():
        name, low, high, step, words, read_only, argument = line.split("\t")
        choices = () if words == "NULL" else tuple(words.split(","))
        found[name.lower()] = Variable(
            dynamic=read_only == "NO",
            low=_bound(low),
            high=_bound(high),
            step=max(1, int(step)) if _INTEGER.fullmatch(step) else 1,
            choices=choices,
            settable=argument != "NULL"
            or read_only == "NO"
            or bool(_UNLISTED.fullmatch(name.lower())),
        )
    return _renamed(found)


def parse_tried(raw: bytes, names: Iterable[str], tried: Iterable[str]) -> dict[str, Variable]:
    """Return MySQL's variables: ranges from `variables_info`, read-only from its refusals."""
    ranges, fixed = {}, set()
    for line in raw.decode(errors="replace").splitlines():
        cells = line.split("\t")
        if cells[0] == "range":
            ranges[cells[1].lower()] = (cells[2], cells[3])
        elif cells[0] == "Error" and cells[1] in (_READ_ONLY, _NO_SUCH):
            fixed.add(cells[2].split("'")[1].lower())
    dynamic = set(tried) - fixed - _HALF_DYNAMIC
    found = {}
    for name in names:
        low, high = ranges.get(name, ("0", "0"))
        known = (low, high) != ("0", "0")
        bounds = (_bound(low), _bound(high)) if known else (None, None)
        found[name] = Variable(name in dynamic, *bounds)
    return _renamed(found)


def refusals(flavour: str, variables: Mapping[str, Variable], want: Settings) -> list[str]:
    """Return one message for each setting that this server does not accept; pure.

    Unknown names are answered with what replaced them, or with the nearest known name.
    """
    return [
        sentence
        for key, value in sorted(want.items())
        if (sentence := _refusal(flavour, variables, key, value))
    ]


def rejected(raw: bytes, want: Settings) -> dict[str, str]:
    """Return, by variable, why a server program rejects or changes its value; pure.

    `raw` is what it prints about an option file that holds `want`.  Values that it rounds to a
    unit are not among them.
    """
    lines = raw.decode(errors="replace").splitlines()
    found = [match for line in lines if (match := _REJECTED.search(line))]
    limits = {_variable(match): match["limit"] for match in found}
    return {
        key: f"mysqld.{key} = {value}: "
        + (
            f"out of range; the nearest value that this server takes is {limits[key]}"
            if limits[key]
            else "this server does not take it; write a value of the variable's type"
        )
        for key, value in sorted(want.items())
        if key in limits
    }


def _variable(match: re.Match[str]) -> str:
    names = (name for kind, name in match.groupdict().items() if name and kind != "limit")
    return next(names).lower().replace("-", "_")


def _refusal(flavour: str, variables: Mapping[str, Variable], key: str, value: str) -> str:
    if key in PLACE:
        return f"mydyno sets mysqld.{key} for its private instance; see net.transport"
    if "\n" in value or "\0" in value:
        return f"mysqld.{key}: a value is one line"
    if key in RENAMED:
        return f"mysqld.{key}: option files take mysqld.{RENAMED[key]}"
    known = variables.get(key)
    if known is None:
        return _unknown(flavour, variables, key)
    if not known.settable:
        return f"mysqld.{key}: this server shows it but does not let it be set"
    return _outside(key, value, known)


def _unknown(flavour: str, variables: Mapping[str, Variable], key: str) -> str:
    kind = f"{flavour} variable"
    if advice := replacement(flavour, key):
        return f"unknown {kind} 'mysqld.{key}': {advice}"
    return unknown_value(key, sorted(variables), kind, prefix="mysqld.", listed=False, cutoff=0.5)


def _outside(key: str, value: str, known: Variable) -> str:
    plain = normalise(value)
    if known.low is not None and known.high is not None:
        if not _NUMBER.fullmatch(plain):
            return f"mysqld.{key} = {value}: not a number"
        if not known.low <= float(plain) <= known.high:
            return f"mysqld.{key} = {value}: outside {known.low:.0f} to {known.high:.0f}"
    words = {normalise(word).casefold() for word in known.choices}
    if words and not _chosen(plain, known.choices, words):
        return f"mysqld.{key} = {value}: one of {', '.join(known.choices)}"
    return ""


def _chosen(plain: str, choices: Sequence[str], words: set[str]) -> bool:
    """Return whether it is one of the words, several of them, flags of them, or their number."""
    parts = [part.partition("=")[0].casefold() for part in plain.split(",")]
    numbered = plain.isdigit() and int(plain) < len(choices)
    return numbered or all(not part or part in words for part in parts)


def _bound(text: str) -> float | None:
    return float(text) if _NUMBER.fullmatch(text) else None


def _renamed(found: dict[str, Variable]) -> dict[str, Variable]:
    for old, new in RENAMED.items():
        if old in found:
            found.setdefault(new, Variable(choices=found.pop(old).choices))
    return found


_SYSTEM_VARIABLES = (
    b"SELECT VARIABLE_NAME, NUMERIC_MIN_VALUE, NUMERIC_MAX_VALUE, NUMERIC_BLOCK_SIZE, "
    b"ENUM_VALUE_LIST, READ_ONLY, COMMAND_LINE_ARGUMENT FROM information_schema.SYSTEM_VARIABLES "
    b"WHERE VARIABLE_SCOPE <> 'SESSION ONLY';\n"
)
_RANGES = (
    b"SELECT 'range', VARIABLE_NAME, MIN_VALUE, MAX_VALUE FROM performance_schema.variables_info;\n"
)
