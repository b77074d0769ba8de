"""Host facts before any change, and samples of host and server while a load runs."""

from mydyno.sample.facts import Facts, cores_busy, facts
from mydyno.sample.sampler import (
    NOT_BUILT,
    Sampling,
    Watch,
    Where,
    complaint,
    disk_of,
    interface_to,
    link_speed,
    probe_binary,
    sampling,
)

__all__ = [
    "NOT_BUILT",
    "Facts",
    "Sampling",
    "Watch",
    "Where",
    "complaint",
    "cores_busy",
    "disk_of",
    "facts",
    "interface_to",
    "link_speed",
    "probe_binary",
    "sampling",
]
