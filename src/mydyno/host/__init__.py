"""Hosts on which commands run: the local one, a network namespace, one reached by ssh."""

from mydyno.host.disks import DISKS, disk_named, disks_below
from mydyno.host.files import packaged_program, remote_work_folder, uploaded, uploaded_program
from mydyno.host.local import Local, Namespaced, interruptible, shielded
from mydyno.host.local import adopt as adopt_strays
from mydyno.host.local import install as install_signals
from mydyno.host.processes import Process, boot_of, is_root
from mydyno.host.protocol import (
    LONGEST_LINE,
    Completed,
    Host,
    Rebootable,
    Remote,
    Running,
    ask,
    halt,
)
from mydyno.host.ssh import LOCAL, Ssh, named, reach

__all__ = [
    "DISKS",
    "LOCAL",
    "LONGEST_LINE",
    "Completed",
    "Host",
    "Local",
    "Namespaced",
    "Process",
    "Rebootable",
    "Remote",
    "Running",
    "Ssh",
    "adopt_strays",
    "ask",
    "boot_of",
    "disk_named",
    "disks_below",
    "halt",
    "install_signals",
    "interruptible",
    "is_root",
    "named",
    "packaged_program",
    "reach",
    "remote_work_folder",
    "shielded",
    "uploaded",
    "uploaded_program",
]
