"""A lease: what a treatment changes on a host, on trial and for good, as mydyno-guard reads it.

While it is on trial nothing of it is in /etc: a reboot ends it without any code of ours.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from mydyno.audit.host_facts import allocator
from mydyno.audit.option_files import number
from mydyno.keep.drift import (
    OF_LEASE,
    OPTIONS,
    Remount,
    Scene,
    effective,
    is_in_force,
    places_of,
    refuse_losing,
)
from mydyno.keep.forms import fstab, native, systemd
from mydyno.keep.kept import Form, Kept, KeptOn
from mydyno.model import RefusedError, SpecError
from mydyno.stack.known import switch
from mydyno.stack.known.allocators import GLIBC, TUNABLES

LEASE_ID = "@"  # in the text of a drop-in: the lease has its id later
_TRIAL = "/run/systemd/system/{unit}.d/zzz-mydyno-trial.conf"
_PLAIN = re.compile(r"[\w.:,/+=@-]*")  # the unit splits its options at blanks
PROCESS = ("limits.", "cpus.", "cgroup.", "alloc.", "env.")  # a process has it from its start
_SERVERS = ("mysqld", "mariadbd")
_SCHEDULER, _DEPTH, _THP = "block.scheduler", "block.nr_requests", "kernel.thp"


class LeaseChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """One change: a `value` below /proc or /sys, a `file`, a `variable` or the options of a mount.

    No value means that the file is absent.  `forth` and `back` are the commands of a remount,
    `made` the folders that a file needed, and `along` what the kernel moves with a value, by place.
    """

    kind: str
    place: str
    before: str | None
    wanted: str | None
    forth: list[str] = []
    back: list[str] = []
    made: list[str] = []
    along: dict[str, str] = {}


class LeaseNote(msgspec.Struct, frozen=True):
    """What a lease is for: its `settings` with their `first` values, and `all` that is kept then.

    What a setting had is ``""`` where it had nothing.
    """

    settings: dict[str, str] = {}
    first: dict[str, str] = {}
    all: dict[str, str] = {}
    evidence: list[str] = []
    foretold: dict[str, str] = {}
    target: KeptOn = KeptOn()
    replica: list[str] = []


class Lease(msgspec.Struct, frozen=True):
    """What `mydyno-guard begin` is given."""

    id: str
    host: str
    who: str
    why: str
    seconds: int
    unit: str
    client: list[str]
    restart: bool
    trial: list[LeaseChange]
    stored: list[LeaseChange]
    undoes: str = ""
    note: LeaseNote = LeaseNote()


class Landed(msgspec.Struct, frozen=True):
    """What a change became, and by place what the kernel has moved along with it."""

    value: str | None = None
    along: dict[str, str] = {}


class Held(msgspec.Struct, frozen=True):
    """A lease on its host; `state` is open, trial, confirmed, kept, reverting or reverted.

    `landed` has an item for each change of the trial, None where it was not begun; `boot` is that
    of the trial.
    """

    lease: Lease
    state: str
    at: int
    until: int
    verdict: str = ""
    judged: str = ""
    why: str = ""
    left: list[str] = []
    landed: list[Landed | None] = []
    boot: str = ""

    @property
    def is_over(self) -> bool:
        """Return whether nothing is to be done for it."""
        return self.state in {"kept", "reverted"}


def kept_leases(held: Sequence[Held]) -> list[Held]:
    """Return the kept leases that no other has undone, the latest last."""
    kept = [one for one in held if one.state == "kept"]
    undone = {one.lease.undoes for one in kept}
    return [one for one in kept if not one.lease.undoes and one.lease.id not in undone]


class LeaseRow(msgspec.Struct, frozen=True):
    """A setting of a lease: its value before and then, its cost, and the file that keeps it."""

    key: str
    before: str
    wanted: str
    cost: str
    where: str


@dataclass(frozen=True, slots=True)
class LeasePlan:
    """What a treatment changes: on trial, and when it is confirmed.

    `along` are first values that the kernel moves with those of the rows, by key; `left` are
    settings that somebody has changed since they were kept, with present values.
    """

    rows: Sequence[LeaseRow]
    trial: Sequence[LeaseChange]
    stored: Sequence[LeaseChange]
    restart: bool
    along: Mapping[str, str] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)


def planned(kept: Kept, already: Mapping[str, str], scene: Scene) -> LeasePlan:
    """Return the changes to `kept`, beside what is `already` kept.

    Raises `SpecError` or `RefusedError` where something cannot be carried, `SpecError` where all of
    it is in force.
    """
    plan = _on_trial(kept, scene)
    if not plan.rows:
        raise SpecError("every setting is in force there already; see mydyno verify")
    _refuse_unlike([row.key for row in plan.rows], kept, scene)
    if plan.restart:  # an undo gives the first values to the unit, too
        for row in (row for row in plan.rows if row.key.startswith("mysqld.")):
            _option(row.key.removeprefix("mysqld."), row.before)
    changed = {row.key: row.wanted for row in plan.rows}
    all_kept = replace(kept, settings={**_library(changed, scene), **already, **changed})
    where = {k: f.path for form, p in _forms(all_kept) for k in p.settings for f in form.write(p)}
    rows = [msgspec.structs.replace(row, where=where.get(row.key, "")) for row in plan.rows]
    stored = _stored(all_kept, set(changed), scene)
    texts = {one.place: one.wanted for one in stored if one.wanted is not None}
    refuse_losing(changed, {row.key: row.where for row in rows}, texts, scene)
    return replace(plan, rows=rows, stored=stored)


def _refuse_unlike(keys: Sequence[str], kept: Kept, scene: Scene) -> None:
    """Raise `RefusedError` where disks differ: of each setting one first value is kept."""
    first = {k: [scene.files.value(place) for place in places_of(k, kept)] for k in keys}
    moved = scene.along.get(_SCHEDULER, {}) if _SCHEDULER in keys else {}
    first |= {k: list(values) for k, values in moved.items() if k == _DEPTH}
    for key, values in first.items():
        if len(set(values)) > 1:
            raise RefusedError(
                f"{key}: is {' and '.join(values)} on {kept.target.disk}; set the disks alike first"
            )


def undone(top: Held, kept: Kept, scene: Scene) -> LeasePlan:
    """Return the changes that undo a kept lease: first values on trial, then its files.

    A setting with another value than these two is somebody else's, and left; so is one that is
    gone, and one that was moved along and has been set since.
    """
    stored = [
        msgspec.structs.replace(one, before=one.wanted, wanted=one.before)
        for one in top.lease.stored
        if one.place not in top.left and scene.texts.get(one.place) != one.before
    ]
    for one in stored:
        if scene.texts.get(one.place) != one.before:
            raise RefusedError(
                f"{one.place}: somebody has changed it since it was kept; compare it with the "
                "first text in mydyno status --json, and restore it by hand"
            )
    left = {}
    for key, wanted in top.lease.note.settings.items():
        try:
            now = _first(key, kept, scene)
        except SpecError:
            left[key] = ""
            continue
        ours = (wanted, kept.settings.get(key, ""))
        if not any(is_in_force(key, one, now, scene.seen) for one in ours):
            left[key] = now
    # what kernel or server move along with a setting that is left is left, too
    bounds = tuple(f"{key}_" for key in left if key.startswith("mysqld."))
    others = {one for key in left for one in scene.along.get(key, {})}
    others |= {k for k in kept.settings if k.startswith(bounds)}
    others |= {k for k, moved in scene.along.items() if moved.keys() & left.keys()}
    along = others - top.lease.note.settings.keys()
    mine = {k: v for k, v in kept.settings.items() if k not in {*left, *along}}
    again = {}
    for key, moved in _moved_along(top, mine, kept, scene).items():
        now = _first(key, kept, scene)
        if now.split() not in (moved.split(), mine[key].split()):
            again[key] = now  # an undo moves it again
    plan = _on_trial(replace(kept, settings=mine | again), scene)
    return replace(plan, stored=stored, left=left | again)


def _moved_along(top: Held, mine: Mapping[str, str], kept: Kept, scene: Scene) -> dict[str, str]:
    """Return what other settings became along with those of a lease, where that is on record.

    A queue belongs to its scheduler, which resets it; and the kernel computes the free memory again
    with each change of huge pages, so that only the lease's own is known.
    """
    found: dict[str, str] = {}
    for change, landed in zip(top.lease.trial, top.landed, strict=False):
        moves = change.place in places_of(_THP, kept)
        if landed and not (moves and scene.files.value(change.place) != change.wanted):
            found |= landed.along | ({change.place: landed.value} if landed.value else {})
    others = [k for k in mine.keys() - top.lease.note.settings.keys() if not k.startswith("block.")]
    names = {k: places_of(k, kept)[0] for k in others if not k.startswith("mysqld.")}
    names |= {k: k.removeprefix("mysqld.") for k in others if k.startswith("mysqld.")}
    return {key: found[name] for key, name in names.items() if name in found}


def _on_trial(kept: Kept, scene: Scene) -> LeasePlan:
    """Return what is changed while it is on trial."""
    first = {key: _first(key, kept, scene) for key in kept.settings}
    changed = {k: v for k, v in kept.settings.items() if not _holds(k, v, first[k], scene)}
    if _SCHEDULER in changed:  # it resets its queue, so that all of that is set again
        changed |= {k: v for k, v in kept.settings.items() if k.startswith("block.")}
    moved = {k for key in changed for k in scene.along.get(key, {}) if k.startswith("kernel.")}
    changed |= {k: v for k, v in kept.settings.items() if k in moved}
    part = replace(kept, settings={**_library(changed, scene), **changed})
    static = any(name not in scene.dynamic for name in part.of("mysqld"))
    restart = static or any(key.startswith(PROCESS) for key in changed)
    trial = _values(part, scene)
    if "fs.mount" in changed and scene.remount:
        trial.append(_mount(part, scene.remount))
    trial += [_drop_in(part, scene)] if restart else _variables(part, first, scene)
    rows = [LeaseRow(k, first[k], v, _cost(k, restart), "") for k, v in changed.items()]
    beside = {k: v[0] for key in changed for k, v in scene.along.get(key, {}).items()}
    # of a queue, what every scheduler has: only that can be planned again when this is undone
    along = {k: v for k, v in beside.items() if k.startswith(("kernel.", "mysqld.")) or k == _DEPTH}
    return LeasePlan(rows, trial, (), restart, along)


def _holds(key: str, wanted: str, present: str, scene: Scene) -> bool:
    if key == "fs.mount" and scene.remount and scene.remount.added & {*present.split(",")}:
        return False
    return is_in_force(key, wanted, present, scene.seen)


def _library(changed: Mapping[str, str], scene: Scene) -> dict[str, str]:
    """Return the allocator in force where only its tunables change: each has a variable."""
    found = allocator(scene.seen.host, scene.seen.variables)
    if "alloc.tunables" not in changed or "alloc.library" in changed or found in {"", GLIBC}:
        return {}
    return {"alloc.library": found}


def _mount(kept: Kept, remount: Remount) -> LeaseChange:
    before, wanted = remount.before, remount.wanted
    commands = list(remount.forth), list(remount.back)
    return LeaseChange("mount", kept.target.mount, before, wanted, *commands)


def not_in_force(rows: Sequence[LeaseRow], kept: Kept, scene: Scene) -> list[str]:
    """Return what of a plan is not in force, a line each."""
    found = []
    for row in rows:
        present = _first(row.key, kept, scene)
        if _holds(row.key, row.wanted, present, scene):
            continue
        found.append(f"{row.key}: is {present or 'not set'}, {row.wanted or 'nothing'} was wanted")
    return found


def _forms(kept: Kept) -> list[tuple[Form, Kept]]:
    """Return the forms that carry something of it, the line of fstab too."""
    found = native.parts(kept)
    if "fs.mount" in kept.settings:
        found.append((fstab.FORM, kept.only(["fs.mount"])))
    return found


def _cost(key: str, restart: bool) -> str:  # noqa: FBT001 - one of two costs
    if key == "fs.mount":
        return "remount"
    return "restart" if restart and key.startswith(("mysqld.", *PROCESS)) else "online"


def _first(key: str, kept: Kept, scene: Scene) -> str:
    """Return the value that a setting has now, ``""`` for an environment without it."""
    if key.startswith("env."):
        return scene.running.get(key.removeprefix("env."), "")
    if key == "alloc.tunables":
        return next((scene.running[n] for n in TUNABLES.values() if n in scene.running), "")
    found = effective(key, kept, scene.seen, scene.files)
    if not found and not key.startswith((*PROCESS, "mysqld.")):  # a variable may be empty
        raise SpecError(f"{key}: its present value cannot be read there; leave it out")
    return found


def _values(kept: Kept, scene: Scene) -> list[LeaseChange]:
    """Return the changes of kernel and disks; what moves others comes before them."""
    wanted = kept.settings
    keys = [key for key in wanted if key.startswith(("kernel.", "block."))]
    keys.sort(key=lambda key: (key not in {_SCHEDULER, _THP}, "iosched" in key, key))
    changes = []
    for key in keys:
        if wanted[key] == "0" and any(key in scene.along.get(other, {}) for other in wanted):
            continue  # it becomes zero with another one, and takes no zero
        moved = scene.along.get(key, {})
        for n, place in enumerate(places_of(key, kept)):
            along = {places_of(k, kept)[n]: values[n] for k, values in moved.items()}
            before = scene.files.value(place)
            changes.append(LeaseChange("value", place, before, wanted[key], along=along))
    return changes


def _variables(kept: Kept, first: Mapping[str, str], scene: Scene) -> list[LeaseChange]:
    """Return the changes of variables; a bound is out of the way before what it bounds moves.

    A server cuts what is beyond its bound, or moves the bound: one that it would move is changed
    first, to what the server would make of it, so that it is restored.
    """
    wanted = kept.of("mysqld")
    now = {name: first[f"mysqld.{name}"] for name in wanted}
    for name, value in kept.of("mysqld").items():
        for key, (present,) in scene.along.get(f"mysqld.{name}", {}).items():
            bound = key.removeprefix("mysqld.")
            twice = f"{2 * (number(value) or 0):.0f}"  # as servers choose it at a start
            if bound not in wanted:
                wanted[bound], now[bound] = twice if bound.endswith("_max") else value, present
    changes = [LeaseChange("variable", name, now[name], _literal(v)) for name, v in wanted.items()]
    return sorted(changes, key=_turn)


def _turn(change: LeaseChange) -> int:
    """Return the turn of a bound, before or after the others: upper ones rise first, lower last."""
    before, wanted = number(change.before or ""), number(change.wanted or "")
    side = change.place.endswith("_max") - change.place.endswith("_lwm")
    if before is None or wanted is None:
        return 0
    return -side if wanted > before else side


def _literal(value: str) -> str:
    """Return a value as SET takes it: 2G in bytes."""
    found = number(value)
    plain = found is not None and value[-1:].isalpha() and value[0].isdigit()
    return str(int(found)) if found is not None and plain else value


def _drop_in(kept: Kept, scene: Scene) -> LeaseChange:
    """Return the drop-in that starts the server with the treatment, as long as this boot lasts."""
    lines = [f"Environment={OF_LEASE}={LEASE_ID}"]  # so that the guard knows what runs with it
    lines += systemd.lines(kept)
    if options := [_option(k, v) for k, v in kept.of("mysqld").items()]:
        lines += _started_with(options, scene)
    place = _TRIAL.format(unit=kept.unit)
    return LeaseChange("file", place, None, "\n".join(["[Service]", *lines]) + "\n")


def named_after(number: str, change: LeaseChange) -> LeaseChange:
    """Return a change whose drop-in names its lease."""
    if change.kind != "file" or change.wanted is None:
        return change
    marked = change.wanted.replace(f"{OF_LEASE}={LEASE_ID}", f"{OF_LEASE}={number}")
    return msgspec.structs.replace(change, wanted=marked)


def _option(name: str, value: str) -> str:
    if not _PLAIN.fullmatch(value):
        raise RefusedError(
            f"mysqld.{name}: {value!r} cannot be given to the server's unit; leave it out"
        )
    return f"--{switch(name, value) or f'{name}={value}'}"


def _started_with(options: Sequence[str], scene: Scene) -> list[str]:
    """Return the lines of a unit that add options to the server's command line."""
    start, unit = scene.start, scene.seen.host.get("unit", "").strip()
    if f"${OPTIONS}" in start or f"${{{OPTIONS}}}" in start:
        theirs = scene.environment.get(OPTIONS)
        if OF_LEASE not in scene.running and scene.running.get(OPTIONS, theirs) != theirs:
            raise RefusedError(
                f"{unit}: the server's {OPTIONS} is not that of Environment= in the unit, so that "
                "EnvironmentFile= would win over what a lease adds; move it there, and restart the "
                "server"
            )
        words = " ".join(filter(None, (theirs, *options)))
        return [f"Environment={systemd.quoted(f'{OPTIONS}={words}')}"]
    if start.split(" ")[0].rpartition("/")[2] not in _SERVERS:
        raise RefusedError(
            f"{unit}: starts the server by {start[:60]!r}, "
            "which takes no options from a drop-in; use mydyno export, and restart it yourself"
        )
    return ["ExecStart=", f"ExecStart={start} {' '.join(options)}"]


def _stored(all_kept: Kept, changed: set[str], scene: Scene) -> list[LeaseChange]:
    """Return the files that `confirm` writes: each holds all that is kept in its form."""
    if refusal := native.refusal(all_kept):
        raise SpecError(refusal)
    found = []
    for form, part in _forms(all_kept):
        if not changed & set(part.settings):
            continue
        if refusal := form.refusal(part):
            raise SpecError(f"{form.name}: {refusal}")
        for file in form.write(part):
            before = scene.texts.get(file.path)
            if before != file.text:
                found.append(LeaseChange("file", file.path, before, file.text))
    return found


def stored_places(kept: Kept) -> list[str]:
    """Return the files of a host in which a treatment is kept."""
    files = [file.path for form, part in _forms(kept) for file in form.write(part)]
    return sorted(set(files))
