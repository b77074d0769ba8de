"""An existing data directory: refused while in use, copied with its permissions, compared.

The original is only read.  A server that has it open would go on writing while it is copied.
"""

import re
import secrets
from collections.abc import Sequence
from pathlib import Path

from mydyno.host import Host, ask
from mydyno.host.files import make
from mydyno.model import Action, HostError, RefusedError, SpecError
from mydyno.snapshot import store
from mydyno.snapshot.store import Entry

KEY = "stack.data"
_COPY_S = 12 * 3600.0  # for very large data sets
_OWN_S = 3600.0  # millions of tables
_APART, _REMOVE = ".copy-", ("rm", "-rf", "--one-file-system", "--")
_SHOWN = 5
_LOCKED = ("ibdata1", "aria_log_control")  # what every server locks as long as it runs
_ELSEWHERE = ("-type", "l", "-o", "-name", "*.isl")
# Server identity, replication state and persisted settings, which do not belong to the data.
_OWN = ("auto.cnf", "master.info", "multi-master.info", "relay-log.info", "mysqld-auto.cnf")


def find(host: Host, written: str) -> Path:
    """Return the folder that a spec means, links followed.

    Raise `SpecError` where it is no data directory, `RefusedError` where it is in use or lies
    partly elsewhere.
    """
    done = host.run(Action(("realpath", "-e", "--", written)))
    real = Path(done.stdout.decode(errors="surrogateescape").rstrip("\n"))
    if done.returncode or host.run(Action(("test", "-d", str(real / "mysql")))).returncode:
        raise SpecError(
            f"{KEY}: {written}: not a data directory on {host.name} "
            "(no folder mysql in it); name the server's datadir"
        )
    if links := _lines(host, "find", str(real), "(", *_ELSEWHERE, ")", "-print"):
        shown = ", ".join(links[:_SHOWN]) + (" and more" if len(links) > _SHOWN else "")
        raise RefusedError(
            f"{KEY}: {shown}: a link, so its target would not be copied; move the target into "
            f"{real} in its place, or fill the data set with a workload"
        )
    if who := user_of(host, real):
        raise RefusedError(
            f"{KEY}: {real} is in use by {who}; stop that server, or name a copy of its data "
            "(a backup that was prepared, a snapshot)"
        )
    return real


def copy(host: Host, source: Path, live: Path, owner: str = "") -> None:
    """Copy the folder to `live` with its permissions and times, and verify the copy.

    All of it is then `owner`'s, ``uid:gid``, if there is one.  Raise `RefusedError` where it does
    not fit or is in use, `HostError` where the two differ.
    """
    entries = ask(host, store.listing(source), timeout_s=_COPY_S)
    free = ask(host, store.free(live.parent))
    refuse_too_large(source, sum(entry.size for entry in entries), free)
    # nobody else may reach into it: its owners are the original's until it is ours
    apart = live.parent / f"{_APART}{secrets.token_hex(8)}"
    killed = ("find", str(live.parent), "-maxdepth", "1", "-name", f"{_APART}*", "-exec", *_REMOVE)
    host.run(Action((*killed, "{}", "+")), timeout_s=_OWN_S)
    make(host, apart, "700")
    copied = apart / "data"
    try:
        _fill(host, source, copied, entries)
        ours = (("chown", "-hR", owner),) if owner else ()
        for argv in (*ours, ("chmod", "-R", "o="), ("chmod", "700")):
            host.run(Action((*argv, "--", str(copied))), timeout_s=_OWN_S).check()
        host.run(Action((*_REMOVE, str(live)))).check()
        host.run(Action(("mv", "-T", "--", str(copied), str(live)))).check()
    finally:
        host.run(Action((*_REMOVE, str(apart))), timeout_s=_OWN_S)


def _fill(host: Host, source: Path, copied: Path, entries: Sequence[Entry]) -> None:
    """Copy the files and compare; leave out what is the original server's own."""
    host.run(store.skeleton(source, copied), timeout_s=_COPY_S).check()
    store.refuse_swapped(entries, ask(host, store.listing(copied), timeout_s=_COPY_S), copied)
    for action in store.contents(source, copied, entries, store.WORKERS):
        host.run(action, timeout_s=_COPY_S).check()
    there = ask(host, store.listing(copied), timeout_s=_COPY_S)
    if wrong := store.differing(entries, there):
        raise HostError(
            f"{copied}: {len(wrong)} files differ from {source} after the copy, {wrong[0]!r} among "
            "them; check that no server uses it"
        )
    host.run(store.sample(source, copied, entries), timeout_s=_COPY_S).check()
    if who := user_of(host, source):
        raise RefusedError(
            f"{KEY}: {source} was used by {who} while it was copied; stop that server"
        )
    own = (str(copied / name) for name in _OWN)
    host.run(Action(("rm", "-f", "--", *own))).check()


def user_of(host: Host, folder: Path) -> str:
    """Return which process has a file below `folder` open or locked, or ``""``.

    Locks show what open files do not: to a user without rights, and a server in a container.
    """
    below = re.sub(r"([\\*?\[])", r"\\\1", str(folder)) + "/*"
    opened = ("find", "/proc", "-mindepth", "3", "-maxdepth", "3", "-path", "/proc/[0-9]*/fd/*")
    found = _lines(host, *opened, "-lname", below, "-print", "-quit")
    pids = [line.split("/")[2] for line in found]
    files = (str(folder / name) for name in _LOCKED)
    inodes = set(_lines(host, "stat", "-c", "%i", "--", *files))
    locks = [line.split() for line in _lines(host, "cat", "/proc/locks")]
    pids += [of[4] for of in locks if len(of) > 5 and of[5].rpartition(":")[2] in inodes]  # noqa: PLR2004 - man proc_locks
    if not pids:
        return ""
    name = _lines(host, "cat", f"/proc/{pids[0]}/comm")
    return f"process {pids[0]}" + (f" ({name[0]})" if name else "")


def size(host: Host, source: Path) -> int:
    """Return the bytes of all files of a data directory."""
    return sum(e.size for e in ask(host, store.listing(source), timeout_s=_COPY_S))


def refuse_too_large(source: Path, wanted: int, free: int) -> None:
    """Raise `RefusedError` where data of so many bytes do not fit into those that are free."""
    if wanted > free:
        raise RefusedError(
            f"{KEY}: {source} holds {wanted / 2**30:.1f} GiB, and the device under test has "
            f"{free / 2**30:.1f} free; make stack.device.size larger"
        )


def _lines(host: Host, *argv: str) -> list[str]:
    """Return what a command prints; what it could not look into is left out."""
    return host.run(Action(argv)).stdout.decode(errors="surrogateescape").splitlines()
