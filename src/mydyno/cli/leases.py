"""What the commands of a lease share: mydyno-guard on the host, and what is read of a host."""

import getpass
import os
import secrets
import shlex
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from socket import gethostname
from typing import Annotated

import msgspec
import typer

from mydyno.audit.facts import ServerEvidence
from mydyno.cli.audit import gathered
from mydyno.host import Host, ask, packaged_program, reach
from mydyno.host.files import distrust
from mydyno.keep.drift import HostFiles, Remount, Scene, value_places
from mydyno.keep.kept import Kept
from mydyno.keep.lease import (
    Held,
    Lease,
    LeaseNote,
    LeasePlan,
    kept_leases,
    named_after,
    not_in_force,
    stored_places,
)
from mydyno.model import (
    Action,
    HostError,
    MydynoError,
    RefusedError,
    Settings,
    SpecError,
)
from mydyno.server.existing import (
    Existing,
    environment_of,
    processes,
    reached,
    texts_of,
)
from mydyno.stack.block import CHOICES, Block
from mydyno.stack.fs import Fs, merged, missing
from mydyno.stack.kernel import Kernel, units
from mydyno.stack.known import normalise
from mydyno.stack.known.variables import COMPANIONS, UPPER, describe
from mydyno.stack.launch_file import pairs
from mydyno.stack.protocol import IDENTITY
from mydyno.testbed.lock import open_campaigns

_FREE = "sysctl.vm.min_free_kbytes"
GUARD = "/usr/local/libexec/mydyno-guard"
_NAME = "mydyno-guard"
CONNECTS_S = 30.0  # threads of replication, after a restart
_OURS = r"""find "$1" -maxdepth 0 -type f ! -perm /002 \( ! -perm /020 -o -group 0 \) \
    \( -user 0 -o -user "$(id -u)" \)"""
_LONG_S = 7 * 86400.0  # the guard has limits of its own, those of the server's unit
_REFUSED, _WRONG = RefusedError.exit_code, SpecError.exit_code

LeaseHost = Annotated[str, typer.Argument(metavar="HOST", help="local, or ssh://user@host:port.")]
Why = Annotated[str, typer.Option("--why", help="The reason, for the host's log.")]


def who() -> str:
    """Return who acts, for the host's log: ``ada@desk``."""
    return f"{os.environ.get('SUDO_USER') or getpass.getuser()}@{gethostname()}"


def has_guard(host: Host) -> bool:
    """Return whether the guard is on a host; raise `RefusedError` for one that others can change.

    Who could change it would have root run another program.
    """
    if host.run(Action(("test", "-x", GUARD))).returncode:
        return False
    problem = distrust(host, Path(GUARD).parent)
    if not (problem or host.run(Action(("sh", "-c", _OURS, "look", GUARD))).stdout):
        problem = "others than root can change it"
    if problem:
        raise RefusedError(
            f"{GUARD}: root would run it, and {problem}; look who has changed it, then give that "
            "to root with mode 0755"
        )
    return True


def leases_of(host: Host) -> list[Held]:
    """Return the leases of a host, the oldest first."""
    if not has_guard(host):
        return []
    return msgspec.json.decode(call(host, "status"), type=list[Held])


def open_lease(to: str) -> tuple[Host, Held]:
    """Return a host, and the lease that is on trial there; raise `SpecError` where none is."""
    host = reach(to)
    there = [one for one in leases_of(host) if not one.is_over]
    if not there:
        raise SpecError(f"{to}: nothing is on trial there; see mydyno status {to}")
    return host, there[-1]


def refuse_open(leases: Sequence[Held]) -> None:
    """Raise an error where a lease is on trial."""
    for one in leases:
        if not one.is_over:
            raise RefusedError(
                f"{one.lease.host}: {one.lease.id} is on trial there since it was begun by "
                f"{one.lease.who}; confirm it or roll it back first"
            )


def call(host: Host, *words: str, stdin: bytes = b"") -> bytes:
    """Return what the guard prints; raise the error of its exit code."""
    done = host.run(Action((GUARD, *words), stdin), timeout_s=_LONG_S)
    if done.returncode in {0, 1}:
        return done.stdout
    text = done.stderr.decode(errors="replace").strip().removeprefix(f"{_NAME}: ")
    kinds = {_REFUSED: RefusedError, _WRONG: SpecError}
    raise kinds.get(done.returncode, HostError)(f"{host.name}: {text}")


def install_guard(host: Host) -> None:
    """Copy the guard to a host where it is missing or of another version."""
    program = Path(packaged_program(_NAME))
    if not program.is_file():
        raise RefusedError(f"{_NAME} is not here; `make setup` builds it")
    there = Path(GUARD)
    its = host.run(Action(("sha256sum", "--", GUARD))).stdout.split(b" ")[0]
    if its != sha256(program.read_bytes()).hexdigest().encode():
        host.run(Action(("mkdir", "-p", "-m", "755", str(there.parent)))).check()
        if problem := distrust(host, there.parent):
            raise RefusedError(
                f"{there.parent}: root would run {_NAME} from there, and {problem}; give it to "
                "root with mode 0755"
            )
        new = f"{GUARD}.new"  # the guard that is there may have leases to end
        host.push(program, Path(new))
        host.run(Action(("chmod", "755", new))).check()  # whoever built it
        if host.run(Action((new, "--version"))).returncode:
            host.run(Action(("rm", "-f", new)))
            raise RefusedError(
                f"{host.name}: cannot run {_NAME}: it was built for another processor; install "
                "mydyno there, and run mydyno apply --to local"
            )
        host.run(Action(("mv", "-f", "-T", new, GUARD))).check()
        host.run(Action(("sync", "-f", GUARD))).check()  # a lease rests on it


def look_at(to: str, server: str) -> tuple[Existing, ServerEvidence]:
    """Return a server by a new connection, and what is read of it.

    Raises an error for one that no unit of the host runs, or that something else manages.
    """
    existing = reached(reach(to), server)
    if existing.process is None:
        raise SpecError(f"{server}: the server runs on another machine; name it with --to ssh://…")
    seen = gathered(existing, 0)
    if not unit_of(seen):
        raise RefusedError(
            f"{existing.host.name}: no unit of systemd runs the server (pid "
            f"{existing.process.pid}), so nothing would undo a trial; use mydyno export"
        )
    return existing, seen


def refuse_shared(existing: Existing) -> None:
    """Raise `RefusedError` where another server reads the same option files.

    What one of them is given there, the other would have at its next start.  In a container it has
    files of its own.
    """
    own = existing.process
    for other in processes(existing.host):
        if own is None or other.pid == own.pid or "--no-defaults" in other.words:
            continue
        spaces = [f"/proc/{pid}/ns/pid" for pid in (own.pid, other.pid)]
        seen = existing.host.run(Action(("readlink", *spaces))).stdout.split()
        same = len(seen) == len(spaces) and seen[0] == seen[1]
        if same and other.option("defaults-file") == own.option("defaults-file"):
            raise RefusedError(
                f"{existing.host.name}: the server with pid {other.pid} reads the same option "
                "files; give each of them its own by --defaults-file first"
            )


def unit_of(seen: ServerEvidence) -> str:
    """Return the unit that runs a server, or ``""``."""
    return seen.host.get("unit", "").strip()


def scene_of(
    existing: Existing,
    seen: ServerEvidence,
    kept: Kept,
    every: Kept,
    undoes: Lease | None = None,
) -> Scene:
    """Return what a lease is planned from, of an undo with the lease that it undoes."""
    host, unit = existing.host, unit_of(seen)
    shown = host.run(Action(("systemctl", "show", "-p", "Environment", "--value", unit))).stdout
    process = existing.process.pid if existing.process else 0
    names = [key.removeprefix("mysqld.") for key in kept.settings if key.startswith("mysqld.")]
    stock = {name: seen.variables[name] for name in names if name in seen.variables}
    places = [one.place for one in undoes.stored] if undoes else stored_places(every)
    known = ask(host, describe(existing.argv, existing.flavour, existing.version, stock))
    return Scene(
        seen,
        HostFiles(texts_of(host, value_places(kept))),
        {place: _text(host, place) for place in places},
        host.run(Action(("systemctl", "cat", unit))).check().stdout.decode(errors="replace"),
        pairs(shlex.split(shown.decode())),
        frozenset(name for name in names if name in known and known[name].dynamic),
        _remount(host, kept, undoes) if "fs.mount" in kept.settings else None,
        environment_of(host, process) or {},
        existing.process.words if existing.process else (),
        {**_along(host, kept, is_undo=undoes is not None), **_bounds(kept, seen)},
    )


def _bounds(kept: Kept, seen: ServerEvidence) -> dict[str, dict[str, list[str]]]:
    """Return the bounds that a server moves with a variable, as `_along` does."""
    found: dict[str, dict[str, list[str]]] = {}
    for name, value in kept.of("mysqld").items():
        bound = COMPANIONS.get(name, "")
        with suppress(KeyError, ValueError):  # a server without it; what is no number it refuses
            wanted, present = (float(normalise(v)) for v in (value, seen.variables[bound]))
            if wanted > present if name in UPPER else wanted < present:
                found[f"mysqld.{name}"] = {f"mysqld.{bound}": [seen.variables[bound]]}
    return found


def _along(host: Host, kept: Kept, *, is_undo: bool) -> dict[str, dict[str, list[str]]]:
    """Return what the kernel moves along with each setting, by full key, with present values.

    Another scheduler resets its queue; of a sysctl in two units the other one becomes zero; huge
    pages move the free memory that is held ready.  Raises the error of the layer for a value that
    cannot be set there, or not be set back; an undo passes over what is gone.
    """
    found: dict[str, dict[str, list[str]]] = {}
    if block := kept.of("block"):
        with suppress(*[SpecError] * is_undo):
            queues = [_queue(host, disk, block) for disk, _ in kept.target.disks]
            shared = sorted(set.intersection(*map(set, queues)))
            found["block.scheduler"] = {f"block.{k}": [q[k] for q in queues] for k in shared}
    if kernel := kept.of("kernel"):
        there = Kernel(tuple(kernel))
        now = ask(host, there.observe())
        kernel = {k: v for k, v in kernel.items() if k in now or not is_undo}
        there.plan(now, kernel)
        for key in kernel:
            moved = [_FREE] if key == "thp" else units(key)
            others = {other: now.get(other, "0") for other in moved if other != key}
            found[f"kernel.{key}"] = {f"kernel.{k}": [v] for k, v in others.items() if v != "0"}
    return found


def _queue(host: Host, disk: str, wanted: Settings) -> dict[str, str]:
    """Return what a scheduler resets of a disk's queue; raise `SpecError` for what it lacks."""
    layer = Block(disk, owned=False)
    now = ask(host, layer.observe())
    layer.plan(now, wanted)
    return {k: v for k, v in now.items() if k not in {IDENTITY, CHOICES, "scheduler"}}


def _text(host: Host, place: str) -> str | None:
    """Return the exact text of a file; None where there is none."""
    if host.run(Action(("test", "-e", place))).returncode:
        return None
    try:
        return host.run(Action(("cat", "--", place))).check().stdout.decode()
    except UnicodeDecodeError as error:
        raise RefusedError(f"{place}: is not UTF-8, so mydyno does not change it") from error


def _remount(host: Host, kept: Kept, undoes: Lease | None) -> Remount:
    """Return the commands that remount forth and back, as the layer plans them."""
    layer, wanted = Fs(kept.target.mount, ""), kept.settings["fs.mount"]
    argv = ("findmnt", "--noheadings", "--output", "OPTIONS", "--mountpoint", kept.target.mount)
    now, shown = ask(host, layer.observe()), host.run(Action(argv)).check().stdout.decode().strip()
    if undoes:
        given = undoes.note.settings.get("fs.mount", "").split(",")
        added = frozenset(given) - {*wanted.split(","), ""}
        others = [option for option in now["mount"].split(",") if option not in added]
        silent = "" if missing(wanted, "strictatime") else ",strictatime"  # as the layer reads it
        there, again = layer.restores(now, merged(",".join(others), wanted + silent))
        return Remount(shown, wanted, there, again, added)
    forth, back = layer.remounts(now, wanted)
    word = next(word for word in forth if word.startswith("remount,"))
    return Remount(shown, word.removeprefix("remount,"), forth, back)


def on_top(leases: Sequence[Held]) -> LeaseNote:
    """Return the note of the latest kept lease: all that is kept."""
    kept = kept_leases(leases)
    return kept[-1].lease.note if kept else LeaseNote()


def lease_of(  # noqa: PLR0913 - all that a lease is
    existing: Existing,
    seen: ServerEvidence,
    name: str,
    plan: LeasePlan,
    why: str,
    *,
    seconds: int,
    note: LeaseNote,
    undoes: str = "",
) -> Lease:
    """Return a lease as the guard takes it; ids sort by time."""
    number = f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    return Lease(
        number,
        name,
        who(),
        why,
        seconds,
        unit_of(seen),
        list(existing.argv),
        plan.restart,
        [named_after(number, change) for change in plan.trial],
        list(plan.stored),
        undoes,
        note,
    )


def refuse_beside(host: Host, to: str) -> None:
    """Raise `RefusedError` where a campaign has left its changes on a host, named as `to`."""
    if lines := open_campaigns(host, to):
        raise RefusedError(
            f"{host.name}: has settings changed by a campaign: {'; '.join(lines)}; restore them "
            "first, as they would count as the host's own"
        )


def begun(host: Host, to: str, server: str, asked: Lease, plan: LeasePlan, kept: Kept) -> None:
    """Begin a lease, and see by a new connection that all of it is in force; else restore it."""
    install_guard(host)
    try:
        call(host, "begin", stdin=msgspec.json.encode(asked))
    except MydynoError:
        _leave_no_guard(host)
        raise
    problems: list[str]
    try:
        existing, seen, stopped = replicating(
            to, server, asked.note.replica, min(CONNECTS_S, asked.seconds / 2)
        )
        there = leases_of(host) if asked.undoes else []
        undoes = (one.lease for one in there if one.lease.id == asked.undoes)
        scene = scene_of(existing, seen, kept, kept, next(undoes, None))
        problems = not_in_force(plan.rows, kept, scene) + stopped
    except MydynoError as error:
        problems = [str(error)]
    if problems:
        call(reach(to), "revert", asked.id, "--why", f"not healthy: {problems[0]}"[:200])
        raise HostError(f"{asked.host}: {'; '.join(problems)}; everything was restored")


def _leave_no_guard(host: Host) -> None:
    """Remove the guard where nothing was ever changed."""
    with suppress(MydynoError):  # the first error is the one to show
        if not leases_of(host):
            call(host, "forget")


def replication(seen: ServerEvidence) -> list[str]:
    """Return the threads of replication that run."""
    return sorted(
        key for key, value in seen.replica.items() if key.endswith("_running") and value == "Yes"
    )


def replicating(
    to: str, server: str, before: Sequence[str], within_s: float = CONNECTS_S
) -> tuple[Existing, ServerEvidence, list[str]]:
    """Return `look_at`, and the threads of replication that ran `before` and do not run.

    After a restart they connect within a while, which is waited for.
    """
    began = time.monotonic()
    while True:
        existing, seen = look_at(to, server)
        stopped = [one for one in before if one not in replication(seen)]
        if not stopped or time.monotonic() - began > within_s:
            return existing, seen, [f"{one} ran before and does not; start it" for one in stopped]
        time.sleep(1.0)
