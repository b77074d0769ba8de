"""What a store of one data set can do: be filled, be sealed, give its golden copy back."""

from pathlib import Path
from typing import Protocol


class Store(Protocol):
    """One data set: filled once, sealed, and restored before each trial."""

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
        """Return in a word or two how it is restored."""
        ...

    def open(self) -> bool:
        """Make ready to be filled, or to be restored if sealed before; return whether sealed."""
        ...

    def freeze(self) -> None:
        """Make what `live` holds the golden copy; nothing may be using it."""
        ...

    def restore(self, mount: str) -> None:
        """Put the golden copy back into `live`, mounted with these options where it is a mount."""
        ...

    def before_load(self) -> None:
        """Bring the disk to the state every load begins with: its caps on, its credits set."""
        ...

    def close(self, *, keep: bool) -> None:
        """Take everything down; the golden copy stays for a resumed campaign if `keep`."""
        ...
