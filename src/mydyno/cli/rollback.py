"""`mydyno rollback`: restores a host after a run that could not do so itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.cli.leases import (
    begun,
    call,
    has_guard,
    lease_of,
    leases_of,
    look_at,
    refuse_beside,
    scene_of,
    who,
)
from mydyno.cli.terminal import HostOption, Json, folders, print_message, print_result
from mydyno.host import LOCAL, Host, Local, named, reach, shielded
from mydyno.host.files import resolved
from mydyno.host.processes import boot_of
from mydyno.journal import read
from mydyno.journal.records import FileRecords, damage, nothing_left
from mydyno.journal.register import OpenCampaign, RunDir, find, forget, marked, opened, registered
from mydyno.keep.kept import Kept
from mydyno.keep.lease import Held, LeaseNote, kept_leases, undone
from mydyno.lab import sweep, sweep_links
from mydyno.model import HostError, JournalError, MydynoError, RefusedError, SpecError
from mydyno.testbed.labs import refuse_unmanaged, sweep_machines
from mydyno.testbed.lock import (
    beside_no_campaign,
    host_lock,
    remove_leftovers,
    restored,
    withdraw,
)

FIRST = "FIRST"
_TRIAL_S = 600  # as long as its restart may take; it is confirmed at once


Directory = Annotated[
    str,
    typer.Argument(
        metavar="[DIR|HOST]",
        help="A run directory; or a host whose lease is restored: local, ssh://user@host. Without "
        "it, leftovers without a run directory are removed.",
        autocompletion=folders,
    ),
]
Until = Annotated[
    str,
    typer.Option("--to", metavar="LEASE", help=f"Of a host: also back to it; {FIRST}: all."),
]
Server = Annotated[
    str, typer.Option(metavar="FILE", help="Of a host: a client option file, or a socket, there.")
]
Forget = Annotated[bool, typer.Option("--forget", help="Of a host: remove all of mydyno there.")]


@dataclass(slots=True)
class Done:
    """What was done, a line each, and what could not be."""

    lines: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def rollback(
    directory: Directory = "",
    *,
    host: HostOption = LOCAL,
    to: Until = "",
    server: Server = "",
    forget_all: Forget = False,
    json: Json = False,
) -> None:
    """Restore what a campaign or a lease changed on a host, and remove what was made."""
    done = Done()
    if named(directory):
        if host != LOCAL:
            raise SpecError(f"--host: {directory} is a host; leave --host out")
        _of_leases(done, directory, until=to, server=server, forget_all=forget_all)
        _print(done, json=json)
        if done.failed:
            raise HostError("; ".join(done.failed))
    elif to or server or forget_all:
        raise SpecError("--to, --server and --forget are of a lease: name its host, such as local")
    else:
        _of_campaign(directory, host, json=json)


def _of_campaign(directory: str, host: str, *, json: bool) -> None:
    """Roll a campaign back, or remove what those without a run directory left."""
    path = resolved(Local(), Path(directory)) if directory else None
    records = find(path) if path else None
    if path and records is None and not path.is_dir():
        raise JournalError(f"{path}: no such run directory, and no records of it; check the path")
    of = registered(records.entries()) if records else None
    if of and host not in {LOCAL, of.host}:
        raise SpecError(f"--host {host}: {path} was run on {of.host}; leave --host out")
    where = reach(of.host if of else host)
    done = Done()
    with shielded(), host_lock(where):
        if records is not None:
            restore(where, records, done)
        elif path is not None:
            if not (campaign := marked(path)):
                read(RunDir(path).journal)  # raises `JournalError` for what is no run directory
            withdraw(where, campaign)  # of one that restored all, and could not remove its note
        _sweep(where, done)
    left = [one.line for one in opened(host)] if path is None else []
    _print(done, left, json=json)
    for line in left:
        print_message(line)
    if done.failed:
        raise HostError("; ".join(done.failed))


def restore(host: Host, records: FileRecords, done: Done) -> None:
    """Restore settings and remove what was created; forget a campaign with nothing left."""
    try:
        _act(host, records, done)
        if count := damage(records.entries()):
            done.lines.append(
                f"warning: {records.path}: {count} damaged lines; what they recorded is not known"
            )
        of = registered(records.entries())
        if of and not OpenCampaign(of, list(records.entries())).moved:
            withdraw(host, of.id)  # also where a folder could not be removed
        if nothing_left(records.entries()):
            forget(records)
    finally:
        records.close()


def _act(host: Host, records: FileRecords, done: Done) -> None:
    settings = restored(host, records, None)
    done.lines += settings.lines
    made = remove_leftovers(host, records)
    done.lines += [f"removed: {line}" for line in made.removed]
    done.lines += [f"NOT removed: {line}" for line in made.failed]
    if settings.failed:
        done.failed.append(f"{host.name}: {len(settings.failed)} settings are still changed")
    if made.failed:
        done.failed.append(f"{host.name}: {len(made.failed)} things could not be removed")


def _sweep(host: Host, done: Done) -> None:
    """Remove what dead campaigns left; an error in one step does not stop the others."""
    machines = (sweep_machines, refuse_unmanaged) if isinstance(host, Local) else ()
    for step in (*machines, sweep_links, sweep):
        try:
            done.lines += [f"removed: {line}" for line in step(host)]
        except MydynoError as error:
            done.failed.append(str(error))


def _print(done: Done, left: Sequence[str] = (), *, json: bool) -> None:
    lines = done.lines or ([] if done.failed or left else ["nothing to restore"])
    print_result(done.lines, lambda: "".join(f"{line}\n" for line in lines), json=json)


def _of_leases(done: Done, to: str, *, until: str, server: str, forget_all: bool) -> None:
    """Restore what is on trial on a host, else what was kept last; note what was `done`.

    `until` names the last lease that is restored, or ``FIRST`` for all; `forget_all` removes what
    mydyno has on the host.  Raises `SpecError` where there is nothing.
    """
    host = reach(to)
    kept, is_done = _ended(done, host)
    if until not in {"", FIRST, *(one.lease.id for one in kept)}:
        names = ", ".join(one.lease.id for one in kept) or "none"
        raise SpecError(f"--to {until}: is not kept there; kept are {names}")
    if not kept and not done.lines and not forget_all:
        raise SpecError(f"{to}: no lease there; see mydyno status {to}")
    while kept and (until or not is_done):
        top = kept.pop()
        if forget_all and not until and not done.lines:
            raise RefusedError(
                f"{top.lease.host}: {top.lease.id} is kept; add --to {FIRST} to restore it, too"
            )
        _undone(done, to, server, top, kept[-1].lease.note if kept else LeaseNote())
        if until in {"", top.lease.id}:
            break
    if forget_all:
        done.lines.append(_forgotten(host))


def _ended(done: Done, host: Host) -> tuple[list[Held], bool]:
    """Restore what is on trial; return the kept leases, and whether it was all that is asked for.

    One that was confirmed, but not stored yet, is kept then.
    """
    leases = leases_of(host)
    if (one := next((one for one in leases if not one.is_over), None)) is None:
        return kept_leases(leases), False
    call(host, "revert", one.lease.id, "--why", f"rolled back by {who()}")
    kept = kept_leases(leases_of(host))
    is_kept = any(each.lease.id == one.lease.id for each in kept)
    end = "was confirmed, and is stored" if is_kept else "restored"
    done.lines.append(f"{one.lease.host}: {one.lease.id} {end}")
    return kept, not is_kept


def _forgotten(host: Host) -> str:
    if not has_guard(host):
        return f"{host.name}: nothing of mydyno is there"
    call(host, "forget")
    return f"{host.name}: leases, units and guard removed"


def _undone(done: Done, to: str, server: str, top: Held, below: LeaseNote) -> None:
    """Undo one kept lease by a lease of its own, which is confirmed by a new connection."""
    existing, seen = look_at(to, server)
    refuse_beside(existing.host, to)
    if top.boot != boot_of(existing.host):  # each boot computes again what moves along
        top = msgspec.structs.replace(top, landed=[])
    note = top.lease.note
    why = f"undoes {top.lease.id}"
    kept = Kept(note.first, [why], {}, existing.flavour, existing.version, note.target)
    scene = scene_of(existing, seen, kept, kept, top.lease)
    plan = undone(top, kept, scene)
    below_it = LeaseNote(all=below.all, target=below.target)
    asked = lease_of(
        existing,
        seen,
        top.lease.host,
        plan,
        why,
        seconds=_TRIAL_S,
        note=below_it,
        undoes=top.lease.id,
    )
    with beside_no_campaign(existing.host):
        begun(existing.host, to, server, asked, plan, kept)
        call(reach(to), "confirm", asked.id, "--who", who())
    done.lines.append(f"{top.lease.host}: {top.lease.id} undone")
    for key, now in plan.left.items():
        state = f"is {now}, set by somebody else since it was kept" if now else "is gone"
        done.failed.append(f"{top.lease.host}: {key} {state}; left as it is")
