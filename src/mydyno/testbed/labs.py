"""Kinds of labs that boot the host of a campaign: each is an installed distribution's.

A device table's ``lab`` names one, unless it is the built-in ``loop``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from mydyno.campaign.spec import Spec
from mydyno.host import Host, Rebootable
from mydyno.journal.register import state_place
from mydyno.model import HostError, SpecError
from mydyno.model.plugins import with_plugins
from mydyno.snapshot import Store
from mydyno.testbed.stores import StoreKey

GROUP = "mydyno.labs"
# The kinds that an extra of mydyno adds, each with the folder of its records, so that what one has
# left is found where it is not installed.
_EXTRAS = {"vm": "vms"}


@runtime_checkable
class LabHost(Host, Rebootable, Protocol):
    """A host that a lab has booted for one campaign, and its data disks."""

    @property
    def emulated(self) -> str:
        """Return a warning that its timings are not valid, or ``""``."""
        ...

    def store(self, key: StoreKey, home: Path, where: Path, *, alone: bool) -> Store:
        """Return a data set on its disks, mounted at `where`, with its snapshot in `home`.

        `alone`: the campaign has no other data set.
        """
        ...


class LabRecord(Protocol):
    """The record of a machine, as ``mydyno lab list --json`` prints it."""

    @property
    def name(self) -> str:
        """Return its name on this host."""
        ...

    @property
    def description(self) -> str:
        """Return a description in one line."""
        ...


@dataclass(frozen=True, slots=True)
class LabKind:
    """What a kind of lab brings; its entry point's name is that of the kind.

    `boot` returns the host that a spec asks for, which is removed when this process ends; it is
    given the spec's place and what prints progress, and raises `SpecError` for an invalid one
    before anything is made.  `sweep` removes machines of dead processes and `remove` one by name;
    both return a line for each thing removed.  `commands` are those of ``mydyno lab``.
    """

    boot: Callable[[Spec, str, Callable[[str], None]], LabHost]
    machines: Callable[[], Sequence[LabRecord]]
    remove: Callable[[Host, str], Sequence[str]]
    sweep: Callable[[Host], Sequence[str]]
    commands: Sequence[Callable[..., None]] = ()


def labs() -> Mapping[str, LabKind]:
    """Return the installed kinds; raise `SpecError` for one that cannot be used."""
    return with_plugins(GROUP, LabKind, {})


def lab_kind(name: str) -> LabKind:
    """Return a kind by its name; raise `SpecError` where it is unknown or not installed."""
    found = labs()
    if name in found:
        return found[name]
    if name in _EXTRAS:
        raise SpecError(f'lab = "{name}": {not_installed(name)}')
    raise SpecError(f'lab = {name!r}: write "loop" or "vm"')


def sweep_machines(host: Host) -> Sequence[str]:
    """Remove the machines of dead processes, of every installed kind; return a line for each."""
    return [line for kind in labs().values() for line in kind.sweep(host)]


def unmanaged() -> Mapping[str, str]:
    """Return, by its machine's name, a line for each record whose kind is not installed."""
    missing = {kind: folder for kind, folder in _EXTRAS.items() if kind not in labs()}
    return {
        path.stem: f"{path}: a machine that cannot be checked or removed: {not_installed(kind)}"
        for kind, folder in missing.items()
        for path in sorted((state_place() / folder).glob("[!.]*.json"))
    }


def refuse_unmanaged(_: Host) -> Sequence[str]:
    """Raise `HostError` where a machine may be left that no installed kind can remove."""
    if lines := unmanaged():
        raise HostError(f"{'; '.join(lines.values())}, then run this again")
    return ()


def not_installed(kind: str) -> str:
    """Return what is missing for a kind of an extra, and the next step."""
    return (
        f"mydyno-{kind} is not installed; run make setup-{kind} in a checkout, or "
        f"pip install --find-links DIR 'mydyno[{kind}]' with the folder that mydyno's wheel was in"
    )
