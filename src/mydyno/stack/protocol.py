"""What a layer is: a question about its present settings, and the changes to wanted ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from mydyno.host import Host
from mydyno.model import Change, Probe, Settings


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
        treatment moved is put back to the first value seen.
        """
        ...

    def observe(self) -> Probe[Settings]:
        """Return the question whose answer is the layer's present settings, normalised."""
        ...

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes from `now` to `want`; pure, empty when there is nothing to do.

        Raise `SpecError` for a key or value this layer does not know, naming what replaced it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Site:
    """A host in a role (`db` or `load`) and the layers of it that may be changed, bottom first."""

    role: str
    host: Host
    layers: Sequence[Layer]
