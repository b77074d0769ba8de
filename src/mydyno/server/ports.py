"""Chooses a loopback port that nobody listens on."""

import random
import re

from mydyno.host import Host
from mydyno.model import Action, HostError

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LOCAL_PORT = re.compile(rb"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ", re.MULTILINE)
_RANGE = range(20000, 32000)  # below the kernel's own choice for outgoing connections


def free_port(host: Host) -> int:
    """Return a port between 20000 and 31999 that no socket of the host holds just now."""
    raw = b"".join(host.run(Action(("cat", table))).stdout for table in _TABLES)
    free = sorted(set(_RANGE) - used(raw))
    if not free:
        raise HostError(f"{host.name}: no free port from {_RANGE.start} to {_RANGE.stop - 1}")
    return random.choice(free)


def used(raw: bytes) -> set[int]:
    """Return the local ports in the text of /proc/net/tcp and tcp6."""
    return {int(port, 16) for port in _LOCAL_PORT.findall(raw)}
