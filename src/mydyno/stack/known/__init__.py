"""What is known of variables, as tables, and how their values are written."""

import re
from collections.abc import Mapping

_SIZE = re.compile(r"(\d+)([KMGTPE])", re.IGNORECASE)
_DECIMAL = re.compile(r"-?\d+\.\d+")
_POWERS = {unit: 1024**power for power, unit in enumerate("KMGTPE", 1)}
_WORDS = {"ON": "1", "TRUE": "1", "OFF": "0", "FALSE": "0"}
FILES = re.compile(
    r"datadir|aria_log_dir_path|early_plugin_load|lower_case_table_names|keyring_.*"
    r"|file_key_management_.*|innodb_(data_(file_path|home_dir)|doublewrite_dir|page_size"
    r"|log_group_home_dir|undo_(directory|tablespaces))"
)
"""Variables of which files hold the data, and how: with another value a server has other data."""

_LISTS = frozenset({"optimizer_switch"})  # a part may be named; the rest keeps its value


def normalise(value: str) -> str:
    """Return a value as it is compared: ``1G`` is 1073741824, ``ON`` is 1, ``10.000`` is 10."""
    plain = value.strip()
    size = _SIZE.fullmatch(plain)
    if size:
        return str(int(size.group(1)) * _POWERS[size.group(2).upper()])
    if _DECIMAL.fullmatch(plain):
        return plain.rstrip("0").rstrip(".")
    return _WORDS.get(plain.upper(), plain)


def sysctl_file(name: str) -> str:
    """Return the file of a sysctl; as in sysctl, a dot within a name is written as a slash."""
    return "/proc/sys/" + name.translate(str.maketrans("./", "/."))


def same(key: str, one: str, other: str) -> bool:
    """Return whether two values of a variable mean the same; letter case and list order do not.

    Of `optimizer_switch`, `other` may name only some of the flags.
    """
    first, second = normalise(one).casefold(), normalise(other).casefold()
    if first == second:
        return True
    if "," not in first + second:
        return False
    flags, named = set(first.split(",")), set(second.split(","))
    return named <= flags if key in _LISTS else flags == named


_POOL = "innodb_buffer_pool_size"
_MEBIBYTE = 1024**2
_DOWN = {
    "binlog_cache_size": 4096,
    "binlog_stmt_cache_size": 4096,
    "innodb_log_file_size": _MEBIBYTE,
    "innodb_redo_log_capacity": _MEBIBYTE,
    "join_buffer_size": 128,
    "key_buffer_size": 4096,
    "max_allowed_packet": 1024,
    "max_binlog_size": 4096,
    "max_heap_table_size": 1024,
    "net_buffer_length": 1024,
    "query_alloc_block_size": 1024,
    "query_cache_size": 1024,
    "query_prealloc_size": 1024,
    "range_alloc_block_size": 1024,
    "read_buffer_size": 4096,
    "thread_stack": 1024,
    "transaction_alloc_block_size": 1024,
    "transaction_prealloc_size": 1024,
}  # units of MySQL, which it does not report; MariaDB does


def granted(key: str, seen: Mapping[str, str], wanted: str, step: int = 1) -> bool:
    """Return whether the value seen is what the server makes of the one wanted.

    `seen` are all variables as the server shows them, `step` is what this one is a multiple of.

    Sizes are rounded down to the variable's unit, a buffer pool of at least one chunk up to a
    multiple of chunks times instances.
    """
    value = normalise(seen.get(key, ""))
    if same(key, value, wanted):
        return True
    if key == "log_bin":  # shown as ON whatever its file's name is
        return value == "1" and normalise(wanted) != "0"
    plain = normalise(wanted)
    if not (value.isdigit() and plain.isdigit()):
        return False
    if key == _POOL:
        return _is_rounded_up(int(value), int(plain), seen)
    step = max(step, _DOWN.get(key, 1))
    return int(value) == int(plain) // step * step


def switch(key: str, value: str) -> str:
    """Return the option without a value that stands for a setting, ``""`` for most.

    `log_bin` takes no ON or OFF in an option file, only a file's name.
    """
    own = {"0": "skip_log_bin", "1": "log_bin"} if key == "log_bin" else {}
    return own.get(normalise(value), "")


def needs_restart(key: str, seen: Mapping[str, str], wanted: str) -> bool:
    """Return whether a running server could not reach it: a pool below its present chunk."""
    plain = normalise(wanted)
    return key == _POOL and plain.isdigit() and int(plain) < _unit(seen)


def _unit(seen: Mapping[str, str]) -> int:
    """Return the bytes that a buffer pool is a multiple of; 0 where the server chooses."""
    chunk = int(seen.get("innodb_buffer_pool_chunk_size", "0"))
    return chunk * max(1, int(seen.get("innodb_buffer_pool_instances", "1")))


def _is_rounded_up(value: int, wanted: int, seen: Mapping[str, str]) -> bool:
    unit = _unit(seen)
    chunk = int(seen.get("innodb_buffer_pool_chunk_size", "0"))
    return unit > 0 and chunk <= wanted <= value < wanted + unit and value % unit == 0


_TWINS = {
    f"sysctl.vm.{kind}_{unit}": f"sysctl.vm.{kind}_{other}"
    for kind in ("dirty", "dirty_background")
    for unit, other in (("bytes", "ratio"), ("ratio", "bytes"))
}


def twin(key: str) -> str:
    """Return the sysctl that has the same meaning in the other unit, ``""`` where there is none.

    Setting one zeroes the other, and neither takes a zero itself.
    """
    return _TWINS.get(key, "")
