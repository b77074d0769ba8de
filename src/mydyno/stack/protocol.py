"""The protocol of a layer: a probe of its current settings, and the changes to wanted ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mydyno.host import Host
from mydyno.model import Action, Change, Probe, Settings

IDENTITY = "@"
"""The observed key that identifies the disk or filesystem; no setting has this name."""


class Layer(Protocol):
    """One layer of the stack; its keys are bare: `scheduler` in ``db/block.scheduler``."""

    @property
    def name(self) -> str:
        """Return the layer's part of a key: `block`, `mysqld`."""
        ...

    @property
    def owned(self) -> bool:
        """Return whether its settings live only in things mydyno made.

        True for a private instance's option file: what a treatment does not name is then left
        out and takes the server's true default.  False for a host's own sysctl: what an earlier
        treatment changed is restored to the first value observed.
        """
        ...

    def observe(self) -> Probe[Settings]:
        """Return the probe of the layer's current settings, normalised."""
        ...

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes from `now` to `want`; pure, empty when there is nothing to do.

        Raise `SpecError` for a key or value this layer does not know, naming what replaced it.
        """
        ...


@runtime_checkable
class Restorable(Protocol):
    """A layer whose changes may affect other settings, and which can restore all it observes."""

    @property
    def at(self) -> str:
        """Return which of several it is: a disk's name, a mount point; empty for the only one."""
        ...

    def undo(self, now: Settings, first: Settings) -> Sequence[Change]:
        """Return the changes that bring what exists in `now` to its `first` value; pure.

        Side effects of these changes are left for the next call.
        """
        ...


@runtime_checkable
class Online(Protocol):
    """A layer of a server that takes some changes while it runs, besides those to its files."""

    def online(self, changes: Sequence[Change]) -> Sequence[Action]:
        """Return the commands that make the running server take its online changes."""
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """A host in a role (`db` or `load`) and the layers of it that may be changed, bottom first."""

    role: str
    host: Host
    layers: Sequence[Layer]
