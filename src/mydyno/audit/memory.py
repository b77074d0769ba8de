"""What a server's memory is, was and may become: three numbers, never one.

The sum of all buffers times ``max_connections`` is no forecast: most of those buffers are never
allocated at once.  What is promised is what is global, what idle connections cost, and what those
that are at work at the same time take.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mydyno.audit.expression import Value
from mydyno.audit.option_files import number
from mydyno.stack.flavours import flavours

_POOL = 1.05  # control structures beside the pages
# Caches that a server has once: the counter that shows whether they are in use, the blocks of them
# that have not been touched yet, and the variable with a block's bytes.
_CACHES = {
    "rate.key_read_requests": ("status.key_blocks_unused", "key_cache_block_size"),
    "rate.aria_pagecache_read_requests": (
        "status.aria_pagecache_blocks_unused",
        "aria_pagecache_block_size",
    ),
}
_BUFFERS = ("innodb_log_buffer_size", "key_buffer_size", "aria_pagecache_buffer_size")
_BLOCK = 1024.0  # of a cache whose variable is not there
# A statement allocates these where it needs them; a counter shows whether any does.
_USED = {
    "sort_buffer_size": "rate.sort_rows",
    "join_buffer_size": "rate.select_full_join",
    "read_rnd_buffer_size": "rate.handler_read_rnd",
    "read_buffer_size": "rate.key_read_requests",
}
POOL = "innodb_buffer_pool_size"
_TYPICAL_BASE = 150 * 2.0**20  # bytes of a server without pool and connections
_AT_ONCE = 2.0  # so many times the statements at once that were seen

Get = Callable[[str], float | None]


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: `now` resident, `peak` resident since its start, `promised` at the level seen.

    `worst` is what would be promised if all of ``max_connections`` worked at once.  `limit` is what
    the server may use.  A number that cannot be known is None.
    """

    promised: float
    worst: float
    now: float | None = None
    peak: float | None = None
    limit: float | None = None

    @property
    def known(self) -> dict[str, float]:
        """Return the numbers that are known, by name."""
        names = ("promised", "worst", "now", "peak", "limit")
        found = {name: getattr(self, name) for name in names}
        return {name: size for name, size in found.items() if size is not None}


def getter(values: Mapping[str, Value]) -> Get:
    """Return a function that returns a fact that is a number, else None."""

    def get(name: str) -> float | None:
        found = values.get(name)
        return found if isinstance(found, float) else None

    return get


def memory_of(flavour: str, values: Mapping[str, Value]) -> Memory:
    """Return the memory of a server with these facts."""
    get = getter(values)
    idle = flavours()[flavour].usual.idle_bytes
    connections = get("status.threads_connected") or 1.0
    most = max(get("status.max_used_connections") or 1.0, connections)
    at_once = min(most, _AT_ONCE * max(1.0, get("fact.running_peak") or 1.0))
    sizes = {name: _size(values, name) for name in _USED}
    seen = sum(size for name, size in sizes.items() if get(_USED[name]))
    fixed = _base(get, values, idle * connections) + _POOL * _size(values, POOL)
    allowed = _size(values, "max_connections") or most
    limits = [size for size in (get("host.memory"), get("cgroup.memory_max")) if size]
    return Memory(
        promised=fixed + idle * most + seen * at_once,
        worst=fixed + (idle + sum(sizes.values())) * allowed,
        now=get("process.rss"),
        peak=get("process.peak"),
        limit=min(limits) if limits else None,
    )


def _size(values: Mapping[str, Value], name: str) -> float:
    value = values.get(f"var.{name}", 0.0)
    return value if isinstance(value, float) else number(value) or 0.0


def _base(get: Get, values: Mapping[str, Value], idle: float) -> float:
    """Return what a server uses besides pool and connections: measured, or as is usual.

    What is resident now is measured; caches in use grow by the blocks that they have left.
    """
    now, size = get("process.rss"), get("status.innodb_page_size")
    total, free = (get(f"status.innodb_buffer_pool_pages_{name}") for name in ("total", "free"))
    if now is None or size is None or total is None or free is None:
        return _TYPICAL_BASE + sum(_size(values, name) for name in _BUFFERS)
    left = sum(
        (get(unused) or 0.0) * (_size(values, block) or _BLOCK)
        for counter, (unused, block) in _CACHES.items()
        if get(counter)
    )
    return max(now - _POOL * (total - free) * size - idle, 0.25 * _TYPICAL_BASE) + left
