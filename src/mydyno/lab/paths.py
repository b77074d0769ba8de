"""The files of one lab, all below its home."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Paths:
    """Where a lab keeps what; `home` is absolute and is the lab's own."""

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
        """Return the file that takes orders and tells the state."""
        return self.mount / "ctl"

    def bases(self, disks: int) -> tuple[Path, ...]:
        """Return the files that hold what was written before the freeze, one for each disk."""
        return tuple(self.home / f"base{_number(n)}.img" for n in range(disks))

    def overlays(self, disks: int) -> tuple[Path, ...]:
        """Return where what is written after it is kept, under names that are gone at once."""
        return tuple(self.home / f"overlay{_number(n)}.img" for n in range(disks))

    @property
    def snapshot_marker(self) -> Path:
        """Return the mark that the base is frozen."""
        return self.home / "golden.json"

    @property
    def log(self) -> Path:
        """Return what mydyno-disk complained of."""
        return self.home / "disk.log"


def _number(disk: int) -> str:
    """Return what tells a disk's files from the first one's."""
    return f"-{disk}" if disk else ""
