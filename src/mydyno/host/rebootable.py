"""The ability of a host to be rebooted with another kernel."""

from typing import Protocol, runtime_checkable


@runtime_checkable
class Rebootable(Protocol):
    """A host that mydyno may reboot: a VM lab, never a host of the user."""

    def reboot(self, release: str = "") -> None:
        """Boot a kernel, named by its release or the beginning of one; return when it answers.

        Raise `SpecError` for a kernel that it does not have, `HostError` if it does not come up.
        """
        ...
