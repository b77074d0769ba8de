"""One running virtual machine: address, disks, kernels, shutdown and removal."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.host import Completed, Host, Running, Ssh
from mydyno.host.ssh import LEASE_S, PATIENCE_S
from mydyno.host.ssh_connection import Address
from mydyno.model import Action, HostError
from mydyno.stack.doses import credit_level
from mydyno.testbed.stores import StoreKey
from mydyno_vm import qemu
from mydyno_vm.image import Image
from mydyno_vm.qemu import serial
from mydyno_vm.store import Disks, VmStore, shape_of
from mydyno_vm.values import VmPaths, VmRecords, VmState

_SHUTDOWN_S = 180.0  # under emulation a shutdown takes most of a minute
_POLL_S = 0.2
_EMULATED = 10.0  # times slower; more on a busy machine


@dataclass(slots=True)
class Vm:
    """A VM lab on `host`; its state changes when it is rebooted."""

    host: Host
    records: VmRecords
    state: VmState

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

    def cap(self, level: float | None) -> None:
        """Give its disks their caps, and credits as a share of a full bucket; None: no caps."""
        qemu.cap(self.state, level)

    def reboot(self, release: str = "") -> None:
        """Shut it down in order and boot it again, with the kernel named or the one it has.

        Raise `SpecError` for a kernel that the image lacks, `HostError` if it does not come back.
        """
        kernel = Image(Path(self.state.image)).kernel(release or self.state.release)
        self.shut_down()
        self.state = qemu.start(self.host, self.records, self.state, kernel.release)

    def shut_down(self) -> None:
        """Power it off; kill its QEMU if it does not end."""
        argv = ("ssh", *self.ssh, self.state.spec.lab, "--", "systemctl", "poweroff")
        with suppress(HostError):  # killed below if it does not answer
            self.host.run(Action(argv), timeout_s=_SHUTDOWN_S)
        end_s = time.monotonic() + _SHUTDOWN_S
        while qemu.alive(self.host, self._paths, self.state.qemu) and time.monotonic() < end_s:
            time.sleep(_POLL_S)
        self.cut_off()

    def cut_off(self) -> None:
        """Kill its QEMU, like a power failure: unflushed writes are lost."""
        qemu.end(self.host, self._paths, self.state.qemu)

    def remove(self) -> Sequence[str]:
        """Remove it with all it wrote; return what was removed.  Can be called again."""
        return qemu.tear_down(self.host, self.records, self.state)

    @property
    def _paths(self) -> VmPaths:
        return VmPaths(Path(self.state.home))


_ATTEMPTS = 2


@dataclass(slots=True, eq=False)
class VmHost:
    """A machine of ours behind its own ssh configuration; what it runs ends with its session."""

    vm: Vm
    _ssh: Ssh = field(init=False)

    def __post_init__(self) -> None:
        name, more = Address(self.vm.state.spec.lab), self.vm.patience
        lease_s, patience_s = more * LEASE_S, more * PATIENCE_S
        self._ssh = Ssh(name, config=self.vm.config, lease_s=lease_s, patience_s=patience_s)

    def connect(self) -> None:
        """Open the session; an emulated machine may need more than one attempt to shake hands."""
        for _ in range(round(_ATTEMPTS * self.vm.patience)):
            with suppress(HostError):
                self._ssh.folder()
                return
        self._ssh.folder()

    @property
    def name(self) -> str:
        """Return its address as a spec writes it."""
        return self._ssh.name

    def folder(self) -> Path:
        """Return a folder of the machine for uploads."""
        return self._ssh.folder()

    def run_folder(self) -> Path:
        """Return the folder of locks on the machine."""
        return self._ssh.run_folder()

    def addresses(self) -> tuple[str, str]:
        """Return the local address as the machine sees it, and the machine's address."""
        return self._ssh.addresses()

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command to its end; under emulation it is given longer."""
        return self._ssh.run(action, timeout_s=timeout_s * self.vm.patience)

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command in the background."""
        return self._ssh.start(action, stderr=stderr)

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file to the machine, atomically."""
        self._ssh.push(local, remote)

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file from the machine, atomically."""
        self._ssh.pull(remote, local)

    @property
    def emulated(self) -> str:
        """Return a warning that its timings are not valid, or ``""`` under KVM."""
        return self.vm.emulated

    def store(self, key: StoreKey, home: Path, where: Path, *, alone: bool) -> VmStore:
        """Return a data set on its disks, mounted at `where`."""
        spec = self.vm.state.spec
        level = credit_level(str(spec.credits)) if spec.caps.bursts else ""
        disks = Disks(tuple(self.vm.disks), self.vm.cap, level)
        return VmStore(self, disks, home, where, shape_of(key), alone)

    def reboot(self, release: str = "") -> None:
        """Boot it with a kernel and return when it answers; what ran in it has ended."""
        self._ssh.close()
        self.vm.reboot(release)
        self.connect()

    def close(self) -> None:
        """Disconnect; the machine keeps running."""
        self._ssh.close()
