"""Emulated devices: disks with the caps of cloud disks, links with the rate of a network."""

from mydyno.host import Process
from mydyno.lab.device import DiskCalibration, LabDevice
from mydyno.lab.lab_link import LabLink, Throughput, measure_throughput, sweep_links
from mydyno.lab.loop_lab import (
    attach,
    available,
    classes,
    create,
    down,
    listing,
    refuse_unknown_class,
    sweep,
)
from mydyno.lab.teardown import InUseError
from mydyno.lab.values import Caps, LabSpec, LabState, Latency, Stripe, older

__all__ = [
    "Caps",
    "DiskCalibration",
    "InUseError",
    "LabDevice",
    "LabLink",
    "LabSpec",
    "LabState",
    "Latency",
    "Process",
    "Stripe",
    "Throughput",
    "attach",
    "available",
    "classes",
    "create",
    "down",
    "listing",
    "measure_throughput",
    "older",
    "refuse_unknown_class",
    "sweep",
    "sweep_links",
]
