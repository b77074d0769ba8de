"""Emulated devices: a lab disk with the caps of a cloud disk under a real block device."""

from mydyno.lab.binary import available
from mydyno.lab.device import LabDevice
from mydyno.lab.loop import attach, create, down, listing, sweep
from mydyno.lab.process import Process
from mydyno.lab.registry import LabState, run_folder
from mydyno.lab.values import Caps, LabSpec, Latency, Measured

__all__ = [
    "Caps",
    "LabDevice",
    "LabSpec",
    "LabState",
    "Latency",
    "Measured",
    "Process",
    "attach",
    "available",
    "create",
    "down",
    "listing",
    "run_folder",
    "sweep",
]
