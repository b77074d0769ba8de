"""Plug-ins: the entries that installed distributions add to a table of built-in ones."""

from collections.abc import Mapping
from typing import TypeVar

from mydyno.model.errors import SpecError

T = TypeVar("T")


def with_plugins(group: str, kind: type[T], built_in: Mapping[str, T]) -> Mapping[str, T]:
    """Return the built-in entries and those of every installed distribution, by name.

    A distribution adds one with an entry point of the `group` (``mydyno.layers``); its name is the
    entry's name, and its object must be a `kind`.  Raises `SpecError`, naming the distribution, for
    an entry that cannot be imported, is no `kind`, or has a name that is taken.

    What is installed is what this Python can import, so root, which runs isolated, takes plug-ins
    from its own environment only.
    """
    from importlib.metadata import entry_points  # noqa: PLC0415 - not needed for --help

    found = dict(built_in)
    owners = dict.fromkeys(built_in, "mydyno")
    for entry in sorted(entry_points(group=group), key=lambda e: (e.name, e.value)):
        owner = entry.dist.name if entry.dist else "an unnamed distribution"
        place = f"plug-in {entry.name!r} in {group}, of {owner}"
        if entry.name in found:
            raise SpecError(
                f"{place}: the name is taken by {owners[entry.name]}; uninstall one of them"
            )
        try:
            loaded = entry.load()
        except Exception as error:  # foreign code, which may raise anything
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            raise SpecError(
                f"{place}: cannot be imported: {reason}; repair or uninstall {owner}"
            ) from error
        if not isinstance(loaded, kind):
            raise SpecError(
                f"{place}: {entry.value} is not a {kind.__name__}; repair or uninstall {owner}"
            )
        found[entry.name], owners[entry.name] = loaded, owner
    return found
