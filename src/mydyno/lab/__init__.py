"""Emulated devices: disks with the caps of a cloud's, and links with the rate of a network's."""

from mydyno.host import Process
from mydyno.lab.binary import available, classes
from mydyno.lab.calibrate import Measured
from mydyno.lab.device import LabDevice
from mydyno.lab.link import LabLink, sweep_links
from mydyno.lab.linkgauge import Throughput, gauge
from mydyno.lab.loop import attach, create, down, listing, sweep
from mydyno.lab.registry import LabState, older
from mydyno.lab.teardown import InUseError
from mydyno.lab.values import Caps, LabSpec, Latency, Stripe

__all__ = [
    "Caps",
    "InUseError",
    "LabDevice",
    "LabLink",
    "LabSpec",
    "LabState",
    "Latency",
    "Measured",
    "Process",
    "Stripe",
    "Throughput",
    "attach",
    "available",
    "classes",
    "create",
    "down",
    "gauge",
    "listing",
    "older",
    "sweep",
    "sweep_links",
]
