"""What a host is and does: facts before anything changes, samples while a load runs."""

from mydyno.measure.binary import NOT_BUILT, probe_binary
from mydyno.measure.facts import Facts, cores_busy, facts, schedulers
from mydyno.measure.sampler import (
    Watch,
    complaint,
    load_reported,
    load_started,
    sampling,
)
from mydyno.measure.where import Where, disk_of

__all__ = [
    "NOT_BUILT",
    "Facts",
    "Watch",
    "Where",
    "complaint",
    "cores_busy",
    "disk_of",
    "facts",
    "load_reported",
    "load_started",
    "probe_binary",
    "sampling",
    "schedulers",
]
