"""The protocol of a data set store: fill, freeze as a snapshot, restore."""

from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """One data set: filled once, frozen as a snapshot, and restored before each trial."""

    @property
    def live(self) -> Path:
        """Return the folder the data is in when it is in use."""
        ...

    @property
    def disk(self) -> str:
        """Return the name in /sys/block of a disk made for it, or ``""``."""
        ...

    @property
    def method(self) -> str:
        """Return a short name of the restore method."""
        ...

    def open(self) -> bool:
        """Prepare it to be filled, or restored if frozen before; return whether frozen."""
        ...

    def freeze(self) -> None:
        """Freeze the contents of `live` as the snapshot; no process may use it."""
        ...

    def restore(self, mount: str) -> None:
        """Restore the snapshot to `live`, mounted with these options if it is a mount."""
        ...

    def before_load(self) -> None:
        """Set the state that every load begins with: caps enabled, credits set."""
        ...

    def close(self, *, keep: bool) -> None:
        """Clean up; `keep` retains the snapshot for a resumed campaign."""
        ...
