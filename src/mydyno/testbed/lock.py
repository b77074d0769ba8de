"""One campaign at a time on a host: lock, notice, work folder, and what a dead one has left."""

import fcntl
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mydyno.host import Host, Local, Running, Ssh
from mydyno.host.files import distrust, identity, is_same, make, remove
from mydyno.journal import Journal, RolledBack, first_values
from mydyno.journal.events import is_read_only
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.journal.register import controller, marked, opened, state_folder
from mydyno.lab import down, listing
from mydyno.model import Action, HostError, JournalError, MydynoError, RefusedError
from mydyno.server import place
from mydyno.server import sweep as sweep_servers
from mydyno.server.existing import dropped
from mydyno.snapshot.device import release
from mydyno.stack import Restoration, restore
from mydyno.stack.layers import layer_of

_NAME = "lock"
_PATIENCE_S = 15  # the session of a killed mydyno ends within seconds
_HOLD = (
    'umask 077; folder=${1%/*}; mkdir -p "$folder" || exit; '
    '[ "$(stat -c %u:%a "$folder")" = "$(id -u):700" ] || { echo "another user: $folder is '
    'accessible to others"; exit 1; }; exec 9<>"$1" || exit; '
    'flock -w "$2" 9 || { cat "$1"; exit 1; }; '
    'echo "$3" >"$1"; echo held; exec sleep infinity'
)
_LOCKED = '[ ! -e "$1" ] || flock -n "$1" true || { cat "$1"; exit 1; }'


@dataclass(slots=True)
class _RemoteLock:
    """The lock on a host over ssh, held by a command there as long as the session lasts."""

    host: Ssh
    holder: Running | None = None

    def take(self) -> None:
        """Take the lock unless it is held already; raise `RefusedError` if another holds it."""
        if self.holder is not None and self.holder.returncode() is None:
            return
        words = (str(self.host.run_folder() / _NAME / _NAME), str(_PATIENCE_S), _who())
        holder = self.host.start(Action(("sh", "-c", _HOLD, "hold", *words)))
        reply = next(holder.lines(), b"").decode(errors="replace").strip()
        if reply != "held":
            raise _refusal(self.host.name, reply)
        self.holder = holder

    def leave(self) -> None:
        """Release the lock; a host that cannot be reached releases it itself."""
        with suppress(HostError):
            if self.holder is not None:
                self.holder.stop(grace_s=1.0)


@contextmanager
def host_lock(*hosts: Host) -> Iterator[Callable[[], None]]:
    """Lock the hosts; raise `RefusedError` where another campaign holds one.

    The function yielded takes the locks again that ended with their session.
    """
    remote = [_RemoteLock(host) for host in dict.fromkeys(hosts) if isinstance(host, Ssh)]

    def take() -> None:
        for one in remote:
            one.take()

    with ExitStack() as stack:
        if len(remote) < len(set(hosts)):
            stack.enter_context(_local_lock())
        for one in remote:
            stack.callback(one.leave)
        take()
        yield take


@contextmanager
def _local_lock() -> Iterator[None]:
    place = state_folder("lock") / _NAME
    with place.open("r" if is_read_only(place.parent) else "a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise _refusal("this host", file.read().strip()) from error
        with suppress(OSError):  # on a full or read-only disk nobody is named, and it is held
            os.ftruncate(file.fileno(), 0)
            os.write(file.fileno(), f"{_who()}\n".encode())
        yield


@contextmanager
def beside_no_campaign(host: Host) -> Iterator[None]:
    """Raise `RefusedError` where a campaign holds the host's lock, and hold it on this machine.

    Over SSH it is only looked at: held, it would leave its file on the host.
    """
    if not isinstance(host, Ssh):
        with host_lock(host):
            yield
        return
    done = host.run(Action(("sh", "-c", _LOCKED, "locked", str(host.run_folder() / _NAME / _NAME))))
    if done.returncode:
        raise _refusal(host.name, done.stdout.decode(errors="replace").strip())
    yield


def _who() -> str:
    return f"process {os.getpid()} of {platform.node()}"


def _refusal(name: str, holder: str) -> RefusedError:
    owner = holder or "another process"
    return RefusedError(
        f"{name}: locked by a campaign of {owner}; wait until it ends, as two campaigns at once "
        "would disturb each other"
    )


_FOLDER = "/run/mydyno-open"  # only root can make it
_MOST = 1000  # characters of a note that are shown
_POST = """
umask 022; text=$(cat)
for try in 1 2 3; do  # the last notice of another campaign takes the folder with it
    mkdir -p "$1" && echo "$text" >"$1/.$2" && mv -f "$1/.$2" "$1/$2" && exit
done
"""
_WITHDRAW = """
rm -f "$1/.$2"; [ "$(head -c 16 "$1/$2" 2>/dev/null)" = "$3" ] && rm -f "$1/$2"
rmdir "$1" 2>/dev/null; :
"""
_READ = """
[ "$(stat -c %u "$1" 2>/dev/null)" = 0 ] || exit 0
cd "$1" && for f in *; do [ -f "$f" ] && echo "$f $(head -c 2000 "$f" | tr '\\n' ' ')"; done; :
"""


def post(host: Host, id_: str, name: str, directory: Path) -> None:
    """Write a notice on the host that this campaign may have changed its settings."""
    text = (
        f"{controller()} campaign {name} of {platform.node()} may have changed settings of this "
        f"host; `mydyno rollback {directory}` there restores them (if that machine no longer "
        f"exists, reboot this host, or remove {_FOLDER}/{id_})"
    )
    argv = ("sh", "-c", _POST, "post", _FOLDER, id_)
    host.run(Action(argv, text.encode(errors="replace"))).check()


def withdraw(host: Host, id_: str) -> None:
    """Remove a campaign's notice if it is this machine's, and one left half-written by a kill."""
    if id_:
        host.run(Action(("sh", "-c", _WITHDRAW, "withdraw", _FOLDER, id_, controller())))


def open_campaigns(host: Host, named: str, but: str = "") -> list[str]:
    """Return a line for each campaign, except `but`, with unrestored changes on the host.

    `named` is the host as a spec names it.  A notice of this controller without records belongs to
    a campaign that restored all and was killed before it could remove the notice.
    """
    ours = [one for one in opened() if one.moved]
    mine = [one for one in ours if named in {"", one.registered.host}]
    lines = [one.line for one in mine if one.registered.id != but]
    known = {but, *(one.registered.id for one in mine)}
    elsewhere = {one.registered.id for one in ours}  # or by another name of this host
    shown = host.run(Action(("sh", "-c", _READ, "read", _FOLDER)))
    for line in shown.stdout.decode(errors="replace").splitlines():
        id_, of, text = (*line.split(" ", 2), "", "")[:3]
        if id_ not in known and (of != controller() or id_ in elsewhere):
            lines.append(text.strip()[:_MOST])
    return lines


def refuse_open(host: Host, named: str, directory: Path) -> None:
    """Raise `RefusedError` where another campaign has left its changes on the host."""
    if lines := open_campaigns(host, named, marked(directory)):
        raise RefusedError(
            f"{host.name}: has settings changed by another campaign: {'; '.join(lines)}; restore "
            "them, then run again"
        )


REMOTE_ROOT = Path("/var/tmp")  # noqa: S108 - a new folder there; it survives a reboot
FOLDER, LOCAL_FOLDER = "folder", "local folder"
_LONG_S = 600.0
_PASSABLE = "711"  # the server runs as a user of its own


def open_work(host: Host, path: Path, records: Records, *, kind: str = FOLDER) -> Path:
    """Return the campaign's work folder: the recorded one where it is still there, or a new one.

    Raises `RefusedError` where `path` is taken, or not safe.
    """
    for made in things(records.entries(), kind):
        there = Path(made.place)
        if made.facts and _is(host, there, made.facts):
            return there
        _forget(host, there, made, records)
    records.add(Made(kind, str(path)))
    make(host, path, _PASSABLE)
    records.add(Made(kind, str(path), identity(host, path)))
    return path


def remove_work(host: Host, records: Records, *, kind: str = FOLDER) -> tuple[list[str], list[str]]:
    """Remove the recorded folders; return what was removed, and what could not be, with reasons."""
    removed: list[str] = []
    failed: list[str] = []
    for made in things(records.entries(), kind):
        try:
            if remove(host, Path(made.place), made.facts, timeout_s=_LONG_S):
                removed.append(made.place)
        except MydynoError as error:
            failed.append(str(error))
            continue
        with suppress(JournalError):  # it is removed even if that is not recorded
            records.add(Removed(kind, made.place))
    return removed, failed


def _is(host: Host, path: Path, facts: dict[str, str]) -> bool:
    try:
        return not distrust(host, path) and is_same(identity(host, path), facts)
    except HostError:
        return False


def _forget(host: Host, path: Path, made: Made, records: Records) -> None:
    """Skip a recorded folder that is gone; raise `RefusedError` if something else is there."""
    if host.run(Action(("rmdir", "--", str(path)))).returncode and (
        host.run(Action(("test", "-e", str(path), "-o", "-L", str(path)))).returncode == 0
    ):
        raise RefusedError(
            f"{path}: not the work folder that this campaign made there; inspect it, remove "
            "it, then run again"
        )
    records.add(Removed(made.kind, made.place))


HOME = "server"  # folder of the first instance; the next are server-2 and so on


@dataclass(slots=True)
class Leftovers:
    """What was removed, and what could not be removed, with the reason; a line each."""

    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def restored(host: Host, records: Records, journal: Journal | None) -> Restoration:
    """Restore a campaign's settings and note it in its journal, where there is one."""
    done = restore(host, records, layer_of)
    with suppress(JournalError):  # restoring must not fail for the note
        if journal and not done.failed and (keys := tuple(first_values(journal.events()))):
            journal.append(RolledBack(keys))
    return done


def remove_leftovers(host: Host, records: Records) -> Leftovers:
    """End servers, lab disks and filesystems of a campaign, and remove its folders.

    Each step runs even if the one before it failed.  Can be called again.
    """
    steps = [
        partial(sweep_servers, host, records),
        *(partial(_labs, host, Path(made.place)) for made in things(records.entries(), FOLDER)),
        partial(release, host, records),
        partial(dropped, host, records),
        partial(remove_work, host, records),
        partial(remove_work, Local(), records, kind=LOCAL_FOLDER),
    ]
    found = Leftovers()
    for step in steps:
        try:
            removed, failed = step()
        except MydynoError as error:
            removed, failed = [], [str(error)]
        found.removed += removed
        found.failed += failed
    if not found.failed:
        place.forget(records)
    return found


def _labs(host: Host, work: Path) -> tuple[list[str], list[str]]:
    removed: list[str] = []
    for state in listing(host):
        if Path(state.home).is_relative_to(work):
            removed += down(host, state.spec.lab)
    return removed, []
