"""Virtual machines as labs: an image built from a recipe, booted by QEMU, reached over ssh."""

from mydyno_vm.boot import attach, create, down, listing, sweep
from mydyno_vm.image import Image, build, built
from mydyno_vm.machine import Vm, VmHost
from mydyno_vm.values import VmSpec, VmState

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
