"""Carries out changes: applies wanted settings, and restores the original ones; nothing else does.

Applying: observe, plan, record, act, observe again.  Side effects on other settings are recorded
too.  Restoring acts first and records afterwards, so that a full disk cannot stop it; it changes a
setting only where that still has the value set by mydyno.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from mydyno.host import Host, Rebootable, ask, boot_of
from mydyno.journal import Changing, Journal
from mydyno.journal.records import Acted, Acting, Moved, Records, Restored, moved
from mydyno.model import (
    Action,
    Change,
    Cost,
    DriftError,
    HostError,
    JournalError,
    MydynoError,
    RefusedError,
    Settings,
)
from mydyno.stack.protocol import (
    IDENTITY,
    Layer,
    Online,
    Restorable,
    Site,
    full_key,
    place_of,
    split,
)

_PASSES = 3  # a new scheduler brings its tunables, and resets attributes that were set with it
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where changes are recorded: the change records, used to restore, and the journal."""

    records: Records
    journal: Journal

    def planned(
        self, changes: Sequence[Change], layer: Layer, role: str, trial: int
    ) -> list[Change]:
        """Record changes in the journal, and return them, with full keys.

        Refuses one that cannot be undone.
        """
        full = [replace(c, key=full_key(layer.name, c.key, role)) for c in changes]
        for change in full:
            if not change.before and not layer.owned:
                raise HostError(
                    f"{change.key}: current value unreadable, so it could not be restored; "
                    "remove it from the spec"
                )
            event = Changing(change.key, change.before, change.after, layer.owned, trial)
            self.journal.append(event)
        return full


@dataclass(slots=True)
class Restoration:
    """The result for each changed setting; `failed` ones are not restored."""

    restored: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)

    @property
    def lines(self) -> list[str]:
        """Return a line for each."""
        return [
            *(f"restored: {line}" for line in self.restored),
            *(f"skipped: {line}" for line in self.gone),
            *(f"left as it is: {line}" for line in self.left),
            *(f"NOT restored: {line}" for line in self.failed),
        ]


def converge(site: Site, want: Settings, ledger: Ledger, trial: int) -> list[Change]:
    """Apply `want` to the site's layers; other settings get their first values.

    Returns the changes with full keys.  Raises `DriftError` where a change has no effect or another
    process has changed a setting meanwhile, and `HostError` where a current value is unreadable, so
    that it could not be restored.
    """
    wanted = split(want)
    return [
        change
        for layer in site.layers
        for change in _Applying(site, layer, ledger, trial).bring(
            dict(wanted.of(layer.name, site.role))
        )
    ]


def converge_made(
    host: Host, layer: Layer, want: Settings, *, timeout_s: float = _TIMEOUT_S
) -> None:
    """Apply `want` to what mydyno has just made, a disk or a pool, which ends with its settings.

    Its maker has recorded it.  `timeout_s` is for each command.  Raises `DriftError` where a change
    has no effect.
    """

    def act(changes: Sequence[Change], _: Settings) -> list[Change]:
        _run(host, _commands(changes), timeout_s)
        return []

    look = partial(ask, host, layer.observe(), timeout_s=timeout_s)
    _repeated(look, partial(_planned, layer, want), act, f"{host.name}: {layer.name}.")


@dataclass(frozen=True, slots=True)
class LayerPlan:
    """Changes of one layer that are not made yet; `hot`: the running server takes them at once."""

    layer: Layer
    changes: Sequence[Change]
    hot: bool = False


def converge_server(
    site: Site, plans: Sequence[LayerPlan], ledger: Ledger, trial: int, observe: Callable[[], None]
) -> list[Change]:
    """Record the planned changes of a private server, make them, and call `observe`.

    `observe` raises `DriftError` where the server does not have its treatment; where the server was
    down it starts it first.  Returns the changes with full keys.
    """
    made: list[Change] = []
    for plan in plans:
        made += ledger.planned(plan.changes, plan.layer, site.role, trial)
    _run(site.host, _commands(made))
    for plan in plans:
        if plan.hot and isinstance(plan.layer, Online):
            _run(site.host, plan.layer.online(plan.changes))
    observe()
    return made


def restore(host: Host, records: Records, layer_of: Callable[[Acting], Layer]) -> Restoration:
    """Restore the first value of every changed setting of the host itself.

    Settings that are gone, or were changed by another process since, are left and reported; errors
    do not stop the others.  `layer_of` rebuilds a layer from its record.
    """
    done = Restoration()
    for one in moved(records.entries()).values():
        if not one.acting.owned:
            _Undoing(host, one, records, done).all(layer_of)
    return done


def restore_made(host: Host, layer: Layer, first: Settings) -> None:
    """Restore the first values of what mydyno used for itself; what it refuses is skipped.

    Its user has them on record, and forgets them afterwards.
    """
    look = partial(ask, host, layer.observe())
    _restored(host, layer, look(), first, look)


def refuse_reboot(host: Host, changes: Sequence[Change]) -> None:
    """Raise `RefusedError` for a change that needs a reboot of a host of the user."""
    for change in changes:
        if change.cost is Cost.REBOOT and not isinstance(host, Rebootable):
            raise RefusedError(
                f"{change.key} is {change.before}, not {change.after}: changing it needs a "
                f"reboot of {host.name}, but mydyno reboots VM labs only; use a VM lab"
            )


@dataclass(frozen=True, slots=True)
class _Applying:
    """Applies a treatment's settings of one layer."""

    site: Site
    layer: Layer
    ledger: Ledger
    trial: int

    @property
    def prefix(self) -> str:
        return f"{self.site.role}/{self.layer.name}."

    @property
    def owned(self) -> bool:
        """Return whether its settings end with what mydyno made: a server, a disk, a machine."""
        return self.layer.owned or isinstance(self.site.host, Rebootable)

    def bring(self, want: dict[str, str]) -> list[Change]:
        now = self._now()
        known = self._moved(now)
        if known is None and not want:
            return []
        made: list[Change] = []
        if known is not None:
            self._refuse_foreign(now, known)
            if dict(known.wanted) != want or not known.sure:
                made += self._until(partial(self._left, want), {})
        return made + self._until(partial(_planned, self.layer, want), want)

    def _until(
        self, left: Callable[[Settings], Sequence[Change]], want: dict[str, str]
    ) -> list[Change]:
        place = f"{self.site.host.name}: {self.prefix}"
        return _repeated(self._now, left, partial(self._act, want), place)

    def _left(self, want: dict[str, str], now: Settings) -> Sequence[Change]:
        """Return how all that the treatment before this one moved is restored.

        Only a reboot is done once.
        """
        known = self._moved(now)
        changes = undone(self.layer, now, known.values()) if known else ()
        return [c for c in changes if c.cost is not Cost.REBOOT or c.key not in want]

    def _refuse_foreign(self, now: Settings, known: Moved) -> None:
        if not known.sure or self.owned:
            return
        for key in known.wanted:
            ours = {known.last.get(key), known.first.get(key)}
            if key in now and key in known.last and now[key] not in ours:
                raise DriftError(
                    f"{self.site.host.name}: {self.prefix}{key} is {now[key]}, but this campaign "
                    f"set it to {known.last[key]}: another process changed it; stop that, "
                    "then run again"
                )

    def _act(self, want: dict[str, str], changes: Sequence[Change], now: Settings) -> list[Change]:
        """Record, act, observe and record what moved; return the changes with full keys."""
        host, layer, records = self.site.host, self.layer, self.ledger.records
        refuse_reboot(host, changes)
        made = self.ledger.planned(changes, layer, self.site.role, self.trial)
        records.add(
            Acting(
                role=self.site.role,
                layer=layer.name,
                at=place_of(layer),
                identity=now.get(IDENTITY, ""),
                boot="" if self.owned else boot_of(host),
                owned=self.owned,
                trial=self.trial,
                before=_watched(layer, now, changes),
                wanted=want,
            )
        )
        for change in changes:
            if change.cost is Cost.REBOOT and isinstance(host, Rebootable):
                host.reboot(change.after)  # how, is the host's own affair
        _run(host, _commands(changes))
        self._note(changes, now)
        return made

    def _note(self, changes: Sequence[Change], before: Settings) -> None:
        """Record what the act moved; without this, restoring takes all that was watched for it."""
        after, known = self._now(), self._moved(before)
        held = _watched(self.layer, before, changes)
        seen = {k: after.get(k, "") for k, v in held.items() if after.get(k) != v}
        seen |= {k: after.get(k, "") for k in (known.first if known else ())}
        self.ledger.records.add(Acted(self.layer.name, place_of(self.layer), seen))

    def _now(self) -> Settings:
        return ask(self.site.host, self.layer.observe())

    def _moved(self, now: Settings) -> Moved | None:
        key = (self.layer.name, place_of(self.layer), now.get(IDENTITY, ""))
        return moved(self.ledger.records.entries()).get(key)


@dataclass(frozen=True, slots=True)
class _Undoing:
    """Restores the settings of one layer, after a campaign."""

    host: Host
    moved: Moved
    records: Records
    done: Restoration

    def all(self, layer_of: Callable[[Acting], Layer]) -> None:
        try:
            self._all(layer_of(self.moved.acting))
        except MydynoError as error:
            self.done.failed += [f"{self._name(key)}: {error}" for key in sorted(self.first)]

    @property
    def first(self) -> dict[str, str]:
        return self.moved.values()

    def _all(self, layer: Layer) -> None:
        acting = self.moved.acting
        if acting.boot != boot_of(self.host):
            self._gone(self.first, "the host was booted since")
            return
        now = self._look(layer)
        if now.get(IDENTITY, "") != acting.identity:
            self._gone(self.first, f"{acting.at} is another one now")
            return
        left = {k for k in self.first if k in now and self._foreign(k, now[k])}
        aim = {k: v for k, v in self.first.items() if k not in left}
        changed = {k for k, v in aim.items() if now.get(k) != v}
        after = _restored(self.host, layer, now, aim, partial(self._look, layer))
        same = [k for k in aim if after.get(k) == aim[k]]
        self.done.restored += [f"{self._name(k)} = {aim[k]}" for k in same if k in changed]
        self._gone([k for k in aim if k not in after], "it does not exist any more")
        self.done.failed += [
            f"{self._name(k)} is {after[k]}, and was {v}"
            for k, v in aim.items()
            if k in after and after[k] != v
        ]
        self._record((*same, *left))

    def _look(self, layer: Layer) -> Settings:
        """Return what is there; what is missing is looked for twice before it counts as gone.

        A command that was cut short shows less than there is.
        """
        now = ask(self.host, layer.observe())
        wanted = [*self.first, *([IDENTITY] if self.moved.acting.identity else [])]
        if any(key not in now for key in wanted):
            again = ask(self.host, layer.observe())
            now = {**now, **again}
        return now

    def _foreign(self, key: str, value: str) -> bool:
        """Return whether another process changed a setting, and report that."""
        last, first = self.moved.last.get(key, ""), self.first[key]
        if value == first:
            return False
        if key in self.moved.doubtful:
            reason = "its first value is not certain: a record before it is damaged"
        elif self.moved.sure and last and value != last:
            reason = f"this campaign had set it to {last}, so something else changed it"
        else:
            return False
        self.done.left.append(f"{self._name(key)} is {value}; {reason}; it was {first}")
        return True

    def _gone(self, keys: Iterable[str], reason: str) -> None:
        gone = tuple(keys)  # of what moved along with a setting nothing is to be reported
        named = [k for k in gone if k in self.moved.wanted or k in self.moved.acting.wanted]
        self.done.gone += [f"{self._name(key)}: {reason}" for key in named]
        self._record(gone)

    def _record(self, keys: tuple[str, ...]) -> None:
        acting = self.moved.acting
        with suppress(JournalError):  # restoring must not fail for the record
            self.records.add(Restored(acting.layer, acting.at, acting.identity, keys))

    def _name(self, key: str) -> str:
        acting = self.moved.acting
        place = f" on {acting.at}" if acting.at else ""
        return f"{acting.role}/{acting.layer}.{key}{place}"


def undone(layer: Layer, now: Settings, first: Settings) -> Sequence[Change]:
    """Return the changes that restore first values; what does not exist just now is left out."""
    if isinstance(layer, Restorable):
        return layer.undo(now, first)
    return layer.plan(now, {k: v for k, v in first.items() if k in now})


def _watched(layer: Layer, now: Settings, changes: Sequence[Change]) -> dict[str, str]:
    """Return what an act may move: all that a layer observes, or else what is to be changed."""
    if isinstance(layer, Restorable):
        return {k: v for k, v in now.items() if k != IDENTITY}
    return {c.key: now[c.key] for c in changes if c.key in now}


def _planned(layer: Layer, want: Settings, now: Settings) -> Sequence[Change]:
    return layer.plan(now, want) if want else ()


def _repeated(
    look: Callable[[], Settings],
    left: Callable[[Settings], Sequence[Change]],
    act: Callable[[Sequence[Change], Settings], list[Change]],
    place: str,
) -> list[Change]:
    """Look, plan and act until nothing is `left`; raise `DriftError` with what is, at last."""
    made: list[Change] = []
    for _ in range(_PASSES):
        now = look()
        if not (changes := left(now)):
            return made
        made += act(changes, now)
    if over := left(look()):
        raise DriftError(", ".join(f"{place}{c.key} is {c.before}, not {c.after}" for c in over))
    return made


def _restored(
    host: Host, layer: Layer, now: Settings, first: Settings, look: Callable[[], Settings]
) -> Settings:
    """Act until first values are back or the passes are spent; return what is seen then."""
    for _ in range(_PASSES):
        actions = _commands(undone(layer, now, first))
        if not actions:
            return now
        for action in actions:
            with suppress(MydynoError):  # checked by the caller; the others must still run
                host.run(action, timeout_s=_TIMEOUT_S)
        now = look()
    return now


def _commands(changes: Sequence[Change]) -> Sequence[Action]:
    """Return the commands of the changes, each once; a reboot is not one of them."""
    return tuple(dict.fromkeys(c.action for c in changes if c.cost is not Cost.REBOOT))


def _run(host: Host, actions: Sequence[Action], timeout_s: float = _TIMEOUT_S) -> None:
    for action in actions:
        host.run(action, timeout_s=timeout_s).check()
