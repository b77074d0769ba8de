"""Emulated devices: disks with the caps of cloud disks, links with the rate of a network."""

from mydyno.host import Process
from mydyno.lab.binary import available, classes
from mydyno.lab.calibration import DiskCalibration
from mydyno.lab.device import LabDevice
from mydyno.lab.lab_link import LabLink, Throughput, measure_throughput, sweep_links
from mydyno.lab.loop_lab import attach, create, down, listing, sweep
from mydyno.lab.registry import LabState, older
from mydyno.lab.teardown import InUseError
from mydyno.lab.values import Caps, LabSpec, Latency, Stripe

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
    "sweep",
    "sweep_links",
]
