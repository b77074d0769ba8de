"""What a server makes of a size that is not a multiple of its unit."""

from collections.abc import Mapping

from mydyno.model import Settings
from mydyno.stack.known.values import normalise, same
from mydyno.stack.known.variables import Variable

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
    "query_cache_size": 1024,
    "read_buffer_size": 4096,
    "thread_stack": 1024,
}  # units of MySQL, which it does not report; MariaDB does


def granted(key: str, seen: Settings, wanted: str, variables: Mapping[str, Variable]) -> bool:
    """Return whether the value seen is what the server makes of the one wanted.

    Sizes are rounded down to the variable's unit, a buffer pool of at least one chunk up to a
    multiple of chunks times instances.
    """
    value = seen.get(key, "")
    if same(key, value, wanted):
        return True
    if key == "log_bin":  # shown as ON whatever its file's name is
        return value == "1" and normalise(wanted) != "0"
    plain = normalise(wanted)
    if not (value.isdigit() and plain.isdigit()):
        return False
    if key == _POOL:
        return _whole_chunks(int(value), int(plain), seen)
    step = max(variables[key].step if key in variables else 1, _DOWN.get(key, 1))
    return int(value) == int(plain) // step * step


def needs_restart(key: str, seen: Settings, wanted: str) -> bool:
    """Return whether a running server could not reach it: a pool below its present chunk."""
    plain = normalise(wanted)
    return key == _POOL and plain.isdigit() and int(plain) < _unit(seen)


def _unit(seen: Settings) -> int:
    """Return the bytes that a buffer pool is a multiple of; 0 where the server chooses."""
    chunk = int(seen.get("innodb_buffer_pool_chunk_size", "0"))
    return chunk * max(1, int(seen.get("innodb_buffer_pool_instances", "1")))


def _whole_chunks(value: int, wanted: int, seen: Settings) -> bool:
    unit = _unit(seen)
    chunk = int(seen.get("innodb_buffer_pool_chunk_size", "0"))
    return unit > 0 and chunk <= wanted <= value < wanted + unit and value % unit == 0
