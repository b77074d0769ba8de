"""A data set on a lab disk: its golden copy is the disk's base, back when the overlay drops."""

import time
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.host import Host
from mydyno.host.mounts import foreign, mount_at
from mydyno.lab.calibration import DiskCalibration
from mydyno.lab.device import LabDevice
from mydyno.lab.loop_lab import create, listing
from mydyno.lab.teardown import REMOVAL_S
from mydyno.lab.values import LabSpec
from mydyno.model import Action, HostError
from mydyno.stack.fs import mkfs
from mydyno.stack.fs import mount as mount_command

_MEASURE_S = 2
_BUSY_S, _AGAIN_S = 10.0, 0.05  # a busy filesystem is tried again for so long, every so often


@dataclass(slots=True)
class LabStore:
    """A filesystem of `kind` on a lab disk of its own, mounted at `where`.

    `options` are of its mkfs; with the mount options `shaping` it is filled.
    """

    host: Host
    spec: LabSpec
    home: Path
    where: Path
    kind: str = "ext4"
    options: str = ""
    shaping: str = ""
    measured: DiskCalibration | None = None
    _device: list[LabDevice] = field(default_factory=list)

    method: str = "overlay dropped"

    @property
    def live(self) -> Path:
        """Return the folder of the data on the mounted disk."""
        return self.where / "data"

    @property
    def disk(self) -> str:
        """Return the loop device's name: ``loop3``."""
        return self.device.name

    @property
    def device(self) -> LabDevice:
        """Return the lab disk; raise `HostError` before `open`."""
        if not self._device:
            raise HostError(f"lab {self.spec.lab}: not open")
        return self._device[0]

    def open(self) -> bool:
        """Make the lab disk; a fresh one is measured, then given its filesystem, uncapped."""
        device = create(self.host, self.spec, self.home, keep=True)
        self._device[:] = [device]
        frozen = device.frozen
        if self.spec.capped and not frozen:
            self.measured = device.measure(_MEASURE_S, write=True)
        device.cap(on=False)
        if not frozen:
            self._run(*mkfs(self.kind, self.options, device.device))
            self._mount(self.shaping)
        return frozen

    def freeze(self) -> None:
        """Unmount, and make what the disk holds its base."""
        self._unmount()
        self.device.freeze()

    def restore(self, mount: str) -> None:
        """Drop what the last trial wrote and mount again: O(1) however much it was."""
        self.device.cap(on=False)
        self._unmount()
        self.device.drop()
        self._mount(mount)

    def before_load(self) -> None:
        """Put the caps on and the credits at the spec's level."""
        self.device.cap(on=True)
        self.device.credits()

    def close(self, *, keep: bool) -> None:
        """Take the lab apart; its base stays if `keep`."""
        if self._device:
            self.device.remove(keep_base=keep)
            self._device.clear()
        argv = ("rmdir", "--ignore-fail-on-non-empty", str(self.where))
        self.host.run(Action(argv), timeout_s=REMOVAL_S)

    def _mount(self, options: str) -> None:
        self._run("mkdir", "-p", str(self.where))
        self._run(*mount_command(self.kind, options, self.device.device, str(self.where)))
        self._run("chmod", "711", str(self.where))  # mkfs lets everybody list it
        self._run("mkdir", "-p", str(self.live))

    def _unmount(self) -> None:
        """Unmount what lab disks have on the mount point: the stores of a campaign share it.

        The rings of a server that was killed are taken down a moment after it is gone.
        """
        end_s = time.monotonic() + _BUSY_S
        while mount_at(self.host, self.where):
            self._refuse_foreign()
            done = self.host.run(Action(("umount", str(self.where))), timeout_s=REMOVAL_S)
            if done.returncode and time.monotonic() < end_s:
                time.sleep(_AGAIN_S)
            else:
                done.check()

    def _refuse_foreign(self) -> None:
        """Raise `HostError` where what is mounted comes from no lab disk of ours."""
        devices = [state.device for state in listing(self.host) if state.device]
        found = [foreign(self.host, self.where, device) for device in devices]
        if all(found):
            raise HostError(
                f"{self.where}: not unmounted: {found[0] if found else 'no lab disk is up'}; look "
                f"at it with `findmnt {self.where}`"
            )

    def _run(self, *argv: str) -> None:
        self.host.run(Action(argv), timeout_s=REMOVAL_S).check()
