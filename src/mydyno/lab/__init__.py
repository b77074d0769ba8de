"""Emulated devices: disks with the caps of cloud disks, links with the rate of a network."""

from mydyno.lab.helper import Helper, Spinner
from mydyno.lab.lab_link import LabLink, measure_round_trip, measure_throughput, sweep_links
from mydyno.lab.loop_lab import (
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
from mydyno.lab.teardown import InUseError
from mydyno.lab.values import LabSpec, Latency, Stripe

__all__ = [
    "Helper",
    "InUseError",
    "LabLink",
    "LabSpec",
    "Latency",
    "Spinner",
    "Stripe",
    "available",
    "bursts",
    "class_names",
    "classes",
    "create",
    "down",
    "listing",
    "measure_round_trip",
    "measure_throughput",
    "refuse_unknown_class",
    "sweep",
    "sweep_links",
]
