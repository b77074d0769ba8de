"""The files of one lab, all below its home."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of a lab's files; `home` is absolute and belongs to the lab."""

    home: Path

    @property
    def mount(self) -> Path:
        """Return where mydyno-disk is mounted."""
        return self.home / "fuse"

    @property
    def disk(self) -> Path:
        """Return the block image it serves, on which the loop device stands."""
        return self.mount / "disk"

    @property
    def control(self) -> Path:
        """Return the control file: commands are written to it, the state is read."""
        return self.mount / "ctl"

    def bases(self, disks: int) -> tuple[Path, ...]:
        """Return the files that hold what was written before the freeze, one for each disk."""
        return tuple(self.home / f"base{_number(n)}.img" for n in range(disks))

    def overlays(self, disks: int) -> tuple[Path, ...]:
        """Return the files for writes after the freeze; they are unlinked once open."""
        return tuple(self.home / f"overlay{_number(n)}.img" for n in range(disks))

    @property
    def snapshot_marker(self) -> Path:
        """Return the marker file of a frozen base."""
        return self.home / "golden.json"

    @property
    def log(self) -> Path:
        """Return the log of mydyno-disk."""
        return self.home / "disk.log"


def _number(disk: int) -> str:
    """Return the suffix of a disk's files; empty for the first."""
    return f"-{disk}" if disk else ""
