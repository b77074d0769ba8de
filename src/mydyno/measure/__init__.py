"""Host facts before any change, and samples of host and server while a load runs."""

from mydyno.measure.binary import NOT_BUILT, probe_binary
from mydyno.measure.facts import Facts, cores_busy, facts
from mydyno.measure.sampler import Sampling, Watch, complaint, sampling
from mydyno.measure.where import Where, disk_of, interface_to, link_speed

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
