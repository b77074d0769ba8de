"""Emulated devices: disks with the caps of cloud disks, links with the rate of a network."""

from mydyno.lab.device import LabDevice
from mydyno.lab.helper import Helper, Spinner
from mydyno.lab.lab_link import LabLink, measure_round_trip, measure_throughput, sweep_links
from mydyno.lab.loop_lab import (
    attach,
    available,
    bursts,
    class_names,
    classes,
    create,
    down,
    listing,
    refuse_unknown_class,
    sweep,
)
from mydyno.lab.loop_lab import binary as disk_binary
from mydyno.lab.teardown import InUseError
from mydyno.lab.values import Caps, LabSpec, LabState, Latency, Stripe

__all__ = [
    "Caps",
    "Helper",
    "InUseError",
    "LabDevice",
    "LabLink",
    "LabSpec",
    "LabState",
    "Latency",
    "Spinner",
    "Stripe",
    "attach",
    "available",
    "bursts",
    "class_names",
    "classes",
    "create",
    "disk_binary",
    "down",
    "listing",
    "measure_round_trip",
    "measure_throughput",
    "refuse_unknown_class",
    "sweep",
    "sweep_links",
]
