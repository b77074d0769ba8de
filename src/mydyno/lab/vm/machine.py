"""One running virtual machine: address, disks, kernels, shutdown and removal."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host
from mydyno.lab.vm import qemu_process
from mydyno.lab.vm.image import Image
from mydyno.lab.vm.qemu import serial
from mydyno.lab.vm.values import VmPaths, VmState
from mydyno.lab.vm.vm_registry import Records
from mydyno.model import Action, HostError

_SHUTDOWN_S = 180.0  # under emulation a shutdown takes most of a minute
_POLL_S = 0.2
_EMULATED = 10.0  # times slower; more on a busy machine


@dataclass(slots=True)
class Vm:
    """A VM lab on `host`; its state changes when it is rebooted."""

    host: Host
    records: Records
    state: VmState

    @property
    def url(self) -> str:
        """Return its address as a spec names a host."""
        return f"ssh://{self.state.spec.lab}"

    @property
    def config(self) -> Path:
        """Return the ssh configuration that knows it: for ``ssh -F``, or $MYDYNO_SSH_CONFIG."""
        return self._paths.config

    @property
    def patience(self) -> float:
        """Return the factor by which timeouts are longer than for a real machine."""
        return 1.0 if self.state.accelerator == "kvm" else _EMULATED

    @property
    def ssh(self) -> tuple[str, ...]:
        """Return the options under which ``ssh`` reaches it, and nothing else under its name."""
        return ("-F", str(self._paths.config))

    @property
    def disks(self) -> Sequence[str]:
        """Return its data disks as it names them, whatever order it found them in."""
        numbers = range(self.state.spec.disks)
        return tuple(f"/dev/disk/by-id/virtio-{serial(number)}" for number in numbers)

    @property
    def releases(self) -> Sequence[str]:
        """Return the kernels it can be booted with."""
        return Image(Path(self.state.image)).releases

    @property
    def emulated(self) -> str:
        """Return a warning that its timings are not valid, or ``""`` under KVM."""
        if self.state.accelerator == "kvm":
            return ""
        return "The machine was emulated (QEMU's TCG, no KVM here): its timings are not valid."

    def reboot(self, release: str = "") -> None:
        """Shut it down in order and boot it again, with the kernel named or the one it has.

        Raise `SpecError` for a kernel that the image lacks, `HostError` if it does not come back.
        """
        kernel = Image(Path(self.state.image)).kernel(release or self.state.release)
        self.shut_down()
        self.state = qemu_process.start(self.host, self.records, self.state, kernel.release)

    def shut_down(self) -> None:
        """Power it off; kill its QEMU if it does not end."""
        argv = ("ssh", *self.ssh, self.state.spec.lab, "--", "systemctl", "poweroff")
        with suppress(HostError):  # killed below if it does not answer
            self.host.run(Action(argv), timeout_s=_SHUTDOWN_S)
        end_s = time.monotonic() + _SHUTDOWN_S
        while (
            qemu_process.alive(self.host, self._paths, self.state.qemu) and time.monotonic() < end_s
        ):
            time.sleep(_POLL_S)
        self.cut_off()

    def cut_off(self) -> None:
        """Kill its QEMU, like a power failure: unflushed writes are lost."""
        qemu_process.end(self.host, self._paths, self.state.qemu)

    def remove(self) -> Sequence[str]:
        """Remove it with all it wrote; return what was removed.  Can be called again."""
        return qemu_process.tear_down(self.host, self.records, self.state)

    @property
    def _paths(self) -> VmPaths:
        return VmPaths(Path(self.state.home))
