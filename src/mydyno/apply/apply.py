"""Record, then act, then observe again; rollback is the same with the first values as its aim."""

from collections.abc import Sequence
from dataclasses import replace

from mydyno.host import Host, ask
from mydyno.journal import Changing, Journal, RolledBack, first_values
from mydyno.model import Change, DriftError, HostError, Settings
from mydyno.stack import Layer, Site

_PASSES = 2  # a new scheduler resets its queue's attributes: they are then set once more
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
        mine = _of(want, prefix)
        now = ask(site.host, layer.observe())
        aim = {k: v for k, v in _of(first, prefix).items() if k in now} | mine
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
            _bring(site.host, layer, aim, (journal, prefix, -1))
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
    host: Host, layer: Layer, aim: Settings, place: tuple[Journal, str, int]
) -> list[Change]:
    made: list[Change] = []
    for _ in range(_PASSES):
        changes = layer.plan(ask(host, layer.observe()), aim)
        if not changes:
            return made
        full = recorded(changes, layer, place)
        for action in dict.fromkeys(c.action for c in changes):
            host.run(action, timeout_s=_TIMEOUT_S).check()
        made = made or full
    if left := layer.plan(ask(host, layer.observe()), aim):
        told = ", ".join(f"{place[1]}{c.key} is {c.before}, not {c.after}" for c in left)
        raise DriftError(f"{host.name}: {told}")
    return made


def _of(settings: Settings, prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}
