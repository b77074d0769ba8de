"""What a lease is refused for: its settings, other leases, edited files, and other managers.

What else manages a server would take a restart for a failure, or undo a change.
"""

import re
from collections.abc import Mapping, Sequence

from mydyno.audit.facts import ServerEvidence
from mydyno.keep.forms import fstab
from mydyno.keep.kept import Kept
from mydyno.keep.lease import PROCESS, Held, LeaseChange, kept_leases
from mydyno.model import RefusedError, SpecError
from mydyno.stack.known import FILES, normalise

_LAYERS = ("mysqld.", "kernel.sysctl.", "kernel.thp", "kernel.module.", "block.", "limits.")
_NO_HOST = ("net.", "link.", "disk.", "slow.", "load/")  # of the load and of a lab
_REDO = "innodb_redo_log_capacity"

# a process of the host, and what it is
_PROCESSES = {
    "pacemakerd": "Pacemaker",
    "corosync": "Corosync",
    "orchestrator": "Orchestrator",
    "replication-man": "replication-manager",  # comm is cut at 15 characters
    "mysqlrouter": "MySQL Router",
    "kubepods": "an operator of Kubernetes",
}
_HEADER = re.compile(
    r"(?:ansible|puppet|chef|salt)[- ]?managed|managed by (?:ansible|puppet|chef|salt)",
    re.IGNORECASE,
)


def managers(seen: ServerEvidence) -> list[str]:
    """Return what would act on a restart of the server, by name."""
    found = []
    if seen.variables.get("wsrep_on", "OFF") == "ON":
        found.append("Galera")
    if seen.variables.get("group_replication_group_name"):
        found.append("group replication")
    there = seen.host.get("managers", "").split()
    found += [name for process, name in _PROCESSES.items() if process in there]
    return found


def managed_files(seen: ServerEvidence) -> list[str]:
    """Return the option files that a tool writes, by its own comment in them."""
    return [path for path, text in seen.files.items() if _HEADER.search(text)]


def refuse(kept: Kept, seen: ServerEvidence) -> None:
    """Raise an error for what a lease cannot change on a running host."""
    for key in kept.settings:
        if key.startswith(_NO_HOST):
            raise RefusedError(
                f"{key}: cannot be applied to a production host; copy the other settings to a TOML "
                "file, and apply that"
            )
        if not (key.startswith((*_LAYERS, *PROCESS)) or key == "fs.mount"):
            raise RefusedError(
                f"{key}: cannot be changed on a host that is in use; move the data to a new one "
                "(docs/guide/moving.md), or leave it out"
            )
        if key.startswith("mysqld."):
            _refuse_variable(key, seen)


def _refuse_variable(key: str, seen: ServerEvidence) -> None:
    name = key.removeprefix("mysqld.")
    if name not in seen.variables:
        raise SpecError(f"{key}: {seen.text} has no such variable; correct or leave it out")
    if name == "log_bin" and normalise(seen.variables[name]) == "1":
        raise RefusedError(
            f"{key}: replicas and recovery to a point in time need the log that there is; "
            "leave it out"
        )
    if FILES.fullmatch(name):
        step = "use mydyno move" if name == "datadir" else "change it on a copy of the data"
        raise RefusedError(
            f"{key}: a revert would start the server on other files, without what was committed "
            f"on trial; {step}"
        )
    origin = seen.origins.get(name, ("",))[0]
    if origin == "persisted":
        raise RefusedError(
            f"{key}: is in mysqld-auto.cnf, which wins over option files; RESET PERSIST {name} "
            "first, or use mydyno export --format persist"
        )
    size = {k.lower(): v for k, v in seen.looks[1].items()}.get(f"{name}_resized", "")
    if name == _REDO and origin in {"", "default"} and size != seen.variables[name]:
        raise RefusedError(
            f"{key}: is not set, and the redo log has another size than this shows, which a revert "
            f"would give it; SET GLOBAL {name} = {size or 'its size in bytes'} first"
        )


def refuse_another(kept: Kept, leases: Sequence[Held]) -> None:
    """Raise `RefusedError` beside kept leases of another server or disk: a file has room for one.

    Their files would be written again, without what they hold for it.
    """
    target = kept.target
    for one in kept_leases(leases):
        other = one.lease.note.target
        first = f"{one.lease.id} keeps settings of %s; roll it back first, or use mydyno export"
        if one.lease.unit != target.unit:
            raise RefusedError(f"{target.unit}: {first % one.lease.unit}")
        both = kept.of("block") and any(key.startswith("block.") for key in one.lease.note.settings)
        here, there = ({serial or name for name, serial in on.disks} for on in (target, other))
        if both and here != there:
            raise RefusedError(f"{target.disk}: {first % other.disk}")


def refuse_foreign_files(places: Mapping[str, str | None], held: Sequence[Held]) -> None:
    """Raise `RefusedError` for a file of ours in /etc that no lease has written: an export."""
    known = {change.place for one in kept_leases(held) for change in one.lease.stored}
    for place, text in places.items():
        if text is not None and place != fstab.PATH and place not in known:
            raise RefusedError(
                f"{place}: is there, and of no lease: an export was copied; remove it, or keep "
                "managing this host with exports"
            )


def refuse_edited(stored: Sequence[LeaseChange], held: Sequence[Held]) -> None:
    """Raise `RefusedError` for a kept file that somebody has edited and that would be replaced."""
    kept: dict[str, str | None] = {}
    for one in kept_leases(held):
        kept |= {each.place: each.wanted for each in one.lease.stored}
        kept |= {each.place: each.before for each in stored if each.place in one.left}
    for change in stored:
        if change.place != fstab.PATH and kept.get(change.place, change.before) != change.before:
            raise RefusedError(
                f"{change.place}: somebody has changed it since it was kept; compare it with the "
                "text in mydyno status --json, and restore it by hand, or undo that lease with "
                "mydyno rollback"
            )
