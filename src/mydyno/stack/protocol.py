"""The protocol of a layer: a probe of its current settings, and the changes to wanted ones."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mydyno.host import Host
from mydyno.model import Action, Change, Probe, Settings, SpecError, unknown_value

IDENTITY = "@"
"""The observed key that identifies the disk or filesystem; no setting has this name."""


class StackSettings(Mapping[str, str]):
    """The settings of a treatment, split by layer once, when it is planned.

    As a mapping it holds them by full key, as journal and JSON do: ``db/mysqld.sync_binlog``.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = dict(settings)
        self._layers: dict[str, dict[str, str]] = {}
        for key, value in settings.items():
            layer, _, bare = key.partition(".")
            self._layers.setdefault(layer, {})[bare] = value

    def __getitem__(self, key: str) -> str:
        return self._settings[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._settings)

    def __len__(self) -> int:
        return len(self._settings)

    def of(self, layer: str, role: str = "db") -> Settings:
        """Return the settings of one layer by bare key."""
        return self._layers.get(f"{role}/{layer}", {})

    def with_layer(self, layer: str, settings: Settings) -> "StackSettings":
        """Return the same settings, except that one layer of the server's host has these."""
        others = {key: v for key, v in self.items() if not key.startswith(full_key(layer, ""))}
        return StackSettings({**others, **{full_key(layer, k): v for k, v in settings.items()}})


def split(settings: Settings) -> StackSettings:
    """Return settings by full key split by layer."""
    return settings if isinstance(settings, StackSettings) else StackSettings(settings)


def full_key(layer: str, key: str, role: str = "db") -> str:
    """Return a setting's key in a role, as journal and JSON write it."""
    return f"{role}/{layer}.{key}"


def spec_key(key: str) -> str:
    """Return a full key as a spec writes it: without the role of the server's host."""
    return key.removeprefix("db/")


def refuse_unknown(want: Settings, known: Sequence[str], layer: str) -> None:
    """Raise `SpecError` for a bare key that a layer does not have."""
    for key in want.keys() - {*known}:
        raise SpecError(unknown_value(key, known, "setting", prefix=f"{layer}."))


def keys_of(treatments: Iterable[StackSettings], layer: str) -> tuple[str, ...]:
    """Return every bare key of a layer that any of the treatments sets, sorted."""
    return tuple(sorted({key for settings in treatments for key in settings.of(layer)}))


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


def place_of(layer: Layer) -> str:
    """Return which of several a layer is, ``""`` where there is one."""
    return layer.at if isinstance(layer, Restorable) else ""


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
