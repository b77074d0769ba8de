"""Virtual machines as labs: an image built from a recipe, booted by QEMU, reached over ssh."""

from mydyno.lab.vm.boot import attach, create, down, listing, sweep
from mydyno.lab.vm.image import Image, build, built
from mydyno.lab.vm.machine import Vm, VmHost
from mydyno.lab.vm.values import VmSpec, VmState

__all__ = [
    "Image",
    "Vm",
    "VmHost",
    "VmSpec",
    "VmState",
    "attach",
    "build",
    "built",
    "create",
    "down",
    "listing",
    "sweep",
]
