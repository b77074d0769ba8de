"""The ability of a host to come back with another kernel."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Rebootable(Protocol):
    """A host that mydyno may boot anew: a lab's machine, never one of the user's own accord."""

    def reboot(self, release: str = "") -> None:
        """Boot it with a kernel, by its release or the beginning of one; return when it answers.

        Raise `SpecError` for a kernel that it does not have, `HostError` if it does not return.
        """
        ...
