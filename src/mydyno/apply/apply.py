"""Record, then act, then observe again; rollback is the same with the first values as its aim."""

from collections.abc import Sequence
from dataclasses import replace

from mydyno.host import Host, Rebootable, ask
from mydyno.journal import Changing, Journal, RolledBack, first_values
from mydyno.model import Change, Cost, DriftError, HostError, RefusedError, Settings
from mydyno.stack import Layer, Site

_PASSES = 3  # a new scheduler brings its tunables, and resets attributes that were set with it
_TIMEOUT_S = 600.0


def apply(site: Site, want: Settings, journal: Journal, trial: int) -> list[Change]:
    """Bring the site's layers to `want`, and what earlier trials moved back to its first value.

    Returns the changes with full keys.  Raises `DriftError` where the host does not follow, and
    `HostError` where a present value cannot be read, so that it could not be put back.
    """
    first = first_values(journal.events(), owned=True)
    made: list[Change] = []
    for layer in site.layers:
        prefix = f"{site.role}/{layer.name}."
        aim = (_of(first, prefix), _of(want, prefix))
        made += _bring(site.host, layer, aim, (journal, prefix, trial))
    return made


def rollback(site: Site, journal: Journal) -> list[str]:
    """Bring every setting of the host that was moved back to the first value seen; return keys."""
    first = first_values(journal.events())
    if not first:
        return []
    for layer in site.layers:
        prefix = f"{site.role}/{layer.name}."
        if not layer.owned and (aim := _of(first, prefix)):
            _bring(site.host, layer, ({}, aim), (journal, prefix, -1))
    journal.append(RolledBack(tuple(first)))
    return list(first)


def recorded(
    changes: Sequence[Change], layer: Layer, place: tuple[Journal, str, int]
) -> list[Change]:
    """Write each change into the journal before anything acts on it; return them with full keys."""
    journal, prefix, trial = place
    full = [replace(change, key=prefix + change.key) for change in changes]
    for change in full:
        if not change.before and not layer.owned:
            raise HostError(f"{change.key}: its present value cannot be read, so it is left alone")
        journal.append(Changing(change.key, change.before, change.after, layer.owned, trial))
    return full


def _bring(
    host: Host, layer: Layer, aim: tuple[Settings, Settings], place: tuple[Journal, str, int]
) -> list[Change]:
    """Bring a layer to `aim`: first values, as far as they still exist, and what is wanted."""
    made: list[Change] = []
    for _ in range(_PASSES):
        changes = _planned(host, layer, aim)
        if not changes:
            return made
        refuse_reboot(host, changes)
        full = recorded(changes, layer, place)
        _act(host, changes)
        made += [c for c in full if c.key not in {m.key for m in made}]
    if left := _planned(host, layer, aim):
        told = ", ".join(f"{place[1]}{c.key} is {c.before}, not {c.after}" for c in left)
        raise DriftError(f"{host.name}: {told}")
    return made


def refuse_reboot(host: Host, changes: Sequence[Change]) -> None:
    """Raise `RefusedError` for a change that takes a reboot of a host that is not ours."""
    for change in changes:
        if change.cost is Cost.REBOOT and not isinstance(host, Rebootable):
            raise RefusedError(
                f"{change.key} is {change.before} and should be {change.after}: that takes a "
                f"reboot of {host.name}, which mydyno only does to machines of its own (a VM lab)"
            )


def _act(host: Host, changes: Sequence[Change]) -> None:
    """Carry changes out, each command once; a reboot is the host's own affair."""
    for change in changes:
        if change.cost is Cost.REBOOT and isinstance(host, Rebootable):
            host.reboot(change.after)
    rest = (c.action for c in changes if c.cost is not Cost.REBOOT)
    for action in dict.fromkeys(rest):
        host.run(action, timeout_s=_TIMEOUT_S).check()


def _planned(host: Host, layer: Layer, aim: tuple[Settings, Settings]) -> Sequence[Change]:
    now = ask(host, layer.observe())
    first, want = aim
    return layer.plan(now, {**{k: v for k, v in first.items() if k in now}, **want})


def _of(settings: Settings, prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}
