"""A data set on a lab disk: its snapshot is the disk's base; dropping the overlay restores it."""

from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host
from mydyno.host.processes import foreign
from mydyno.lab.device import DiskCalibration, LabDevice
from mydyno.lab.loop_lab import create, listing
from mydyno.lab.teardown import REMOVAL_S
from mydyno.lab.values import LabSpec
from mydyno.model import Action, HostError
from mydyno.snapshot import StorePlace
from mydyno.snapshot.store import unmount
from mydyno.stack.doses import LabDisk, credit_level
from mydyno.stack.fs import close_root, mkfs
from mydyno.stack.fs import mount as mount_command

_MEASURE_S = 2


@dataclass(slots=True)
class LabStore:
    """A filesystem of `kind` on a lab disk of its own, mounted at `where`.

    `options` are those of mkfs; `shaping` are the mount options while it is filled.
    """

    host: Host
    spec: LabSpec
    home: Path
    where: Path
    kind: str = "ext4"
    options: str = ""
    shaping: str = ""
    measured: DiskCalibration | None = None
    _device: LabDevice | None = None

    @property
    def place(self) -> StorePlace:
        """Return the folder on the mounted disk, and the loop device's name: ``loop3``."""
        state = self.device.state
        daemon = state.daemon.pid if state.daemon else 0
        control = state.paths.control
        where = (self.where / "data", self.device.name, "overlay dropped", control, daemon)
        return StorePlace(*where, (LabDisk(control, credit_level(str(self.spec.credits))),))

    @property
    def device(self) -> LabDevice:
        """Return the lab disk; raise `HostError` before `open`."""
        if self._device is None:
            raise HostError(f"lab {self.spec.lab}: not open")
        return self._device

    def open(self) -> bool:
        """Make the lab disk; calibrate a new one and make its filesystem, uncapped."""
        device = create(self.host, self.spec, self.home, keep=True)
        self._device = device
        frozen = device.frozen
        if self.spec.capped and not frozen:
            self.measured = device.measure(_MEASURE_S, write=True)
        device.cap(on=False)
        if not frozen:
            self._run(*mkfs(self.kind, self.options, device.device))
            self._run("mkdir", "-p", str(self.where))
            self._run(*close_root(self.kind, device.device, str(self.where)))
            self._mount(self.shaping)
        return frozen

    def freeze(self) -> None:
        """Unmount, and freeze the contents of the disk as its base."""
        self._unmount()
        self.device.freeze()

    def restore(self, mount: str) -> None:
        """Drop the writes of the last trial and mount again; takes constant time."""
        self.device.cap(on=False)
        self._unmount()
        self.device.drop()
        self._mount(mount)

    def power_on(self) -> None:
        """Unmount what a power cut has left, and switch the power on."""
        self._unmount()
        self.device.power_on()

    def mount(self, options: str) -> None:
        """Mount what a power cut has left; raise `HostError` if the filesystem is damaged."""
        self._mount(options)

    def before_load(self) -> None:
        """Enable the caps and set the credits to the treatment's level, or else the spec's."""
        self.device.cap(on=True)
        self.device.refill()

    def close(self, *, keep: bool) -> None:
        """Remove the lab; `keep` retains its base."""
        if self._device is not None:
            self._device.remove(keep_base=keep)
            self._device = None
        argv = ("rmdir", "--ignore-fail-on-non-empty", str(self.where))
        self.host.run(Action(argv), timeout_s=REMOVAL_S)

    def _mount(self, options: str) -> None:
        self._run("mkdir", "-p", str(self.where))
        self._run(*mount_command(self.kind, options, self.device.device, str(self.where)))
        self._run("mkdir", "-p", str(self.place.live))

    def _unmount(self) -> None:
        """Unmount the lab disks on the mount point, which the stores of a campaign share."""
        unmount(self.host, self.where, self._refuse_foreign)

    def _refuse_foreign(self) -> None:
        """Raise `HostError` where the mount is not one of a lab disk."""
        devices = [state.device for state in listing(self.host) if state.device]
        found = [foreign(self.host, self.where, device) for device in devices]
        if all(found):
            raise HostError(
                f"{self.where}: not unmounted: {found[0] if found else 'no lab disk is up'}; "
                f"inspect it with `findmnt {self.where}`"
            )

    def _run(self, *argv: str) -> None:
        self.host.run(Action(argv), timeout_s=REMOVAL_S).check()
