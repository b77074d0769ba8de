"""Data sets as they were: the protocol of stores, and copies of directories."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from mydyno.host import Host, ask
from mydyno.host.processes import mount_at
from mydyno.model import Action, HostError, Probe
from mydyno.stack.protocol import Layer


@dataclass(frozen=True, slots=True)
class StorePlace:
    """Where the data of an open store are.

    `live` is the folder that they are used in, `disk` the name in /sys/block of a disk made for
    them, empty in a plain directory.  `method` is a short name of how they are restored; `control`
    is where a lab disk takes orders, `daemon` the pid of the process that it is, `layers` are those
    of its own settings.
    """

    live: Path
    disk: str
    method: str
    control: Path | None = None
    daemon: int = 0
    layers: tuple[Layer, ...] = ()


class Store(Protocol):
    """One data set: filled once, frozen as a snapshot, and restored before each trial."""

    @property
    def place(self) -> StorePlace:
        """Return where its data are; raise `HostError` before `open`."""
        ...

    def open(self) -> bool:
        """Prepare it to be filled, or restored if frozen before; return whether frozen."""
        ...

    def freeze(self) -> None:
        """Freeze the contents of `live` as the snapshot; no process may use it."""
        ...

    def restore(self, mount: str) -> None:
        """Restore the snapshot to `live`, mounted with these options if it is a mount."""
        ...

    def close(self, *, keep: bool) -> None:
        """Clean up; `keep` retains the snapshot for a resumed campaign."""
        ...


@runtime_checkable
class Capped(Protocol):
    """A store whose disk is slower during a load than while it is prepared."""

    def before_load(self) -> None:
        """Set the state that every load begins with: caps enabled, credits set."""
        ...


def settle(host: Host, store: Store) -> None:
    """Bring a store's disk to the state that every load begins with: its caps, or idle."""
    if isinstance(store, Capped):
        store.before_load()
        return
    sync = Action(("sync", "-f", str(store.place.live)))  # the dirty pages of a copy
    host.run(sync, timeout_s=600).check()


WORKERS = 4  # tables of a data set that are read at once: docs/reference/benches.md
_SMALL_BYTES = 1 << 20  # below this, starting a program takes longer than the copy
_BATCH = 64
_SAMPLED = 8  # files, the largest ones
_SAMPLE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, folder or link of a tree: its type and rights in one word, bytes, path below it."""

    kind: str
    size: int
    path: str


def listing(folder: Path) -> Probe[list[Entry]]:
    """Return the probe for the entries of a folder; only files have a size."""
    folders = ("-type", "d", "-printf", "%y:%m:%U:%G 0 %P\\0")
    others = ("-o", "-printf", "%y:%m:%U:%G %s %P\\0")
    return Probe(Action(("find", str(folder), *folders, *others)), _entries)


def free(folder: Path) -> Probe[int]:
    """Return the probe for the bytes available to an unprivileged user below a folder."""
    return Probe(Action(("stat", "-f", "-c", "%a %S", str(folder))), _bytes)


_BUSY_S, _AGAIN_S = 10.0, 0.05  # of retries of umount


def unmount(host: Host, where: Path, refuse: Callable[[], None]) -> None:
    """Unmount all that is mounted at `where`; `refuse` raises `HostError` for what is not ours.

    Retried while busy: the io_uring rings of a killed server end a moment after it.
    """
    end_s = time.monotonic() + _BUSY_S
    while mount_at(host, where):
        refuse()
        done = host.run(Action(("umount", str(where))), timeout_s=600)
        if done.returncode and time.monotonic() < end_s:
            time.sleep(_AGAIN_S)
        else:
            done.check()


def skeleton(snapshot: Path, live: Path) -> Action:
    """Return the command that makes every folder, link and empty file, with rights and owners."""
    return Action(("cp", "-a", "--attributes-only", "-T", str(snapshot), str(live)))


def refuse_swapped(entries: Sequence[Entry], made: list[Entry], live: Path) -> None:
    """Raise `HostError` where a skeleton is not of these entries, before anything is filled in.

    Who owns the original may have put a link in a folder's place meanwhile; what is filled in would
    follow it.
    """
    kinds = {entry.path: entry.kind.partition(":")[0] for entry in entries}
    for one in made:
        if kinds.get(one.path, own := one.kind.partition(":")[0]) != own:
            raise HostError(
                f"{live / one.path}: the original was changed while it was copied; stop its server"
            )


def contents(snapshot: Path, live: Path, entries: Iterable[Entry], workers: int) -> list[Action]:
    """Return the commands that fill the files, the largest first to balance the workers.

    A file is copied by one worker; holes stay holes.  Small files go many to a program.
    """
    files = sorted((e for e in entries if _file(e) and e.size), key=lambda e: -e.size)
    large = [e for e in files if e.size >= _SMALL_BYTES]
    copy = ("cp", "-a", "--reflink=never", "--sparse=auto", "--parents", "-t", str(live), "--")
    return [
        Action(
            ("env", "-C", str(snapshot), "xargs", "-0", "-P", str(workers), "-n", str(many), *copy),
            b"".join(e.path.encode(errors="surrogateescape") + b"\0" for e in some),
        )
        for many, some in ((1, large), (_BATCH, files[len(large) :]))
        if some
    ]


def sample(snapshot: Path, live: Path, entries: Iterable[Entry]) -> Action:
    """Return the command that compares the middle of the largest files, a MiB of each."""
    files = sorted((e for e in entries if _file(e)), key=lambda e: -e.size)[:_SAMPLED]
    words = [
        word
        for e in files
        for word in (str(e.size // 2), str(snapshot / e.path), str(live / e.path))
    ]
    each = ("cmp", "-n", str(_SAMPLE_BYTES), "-i")
    given = "".join(f"{word}\0" for word in words).encode(errors="surrogateescape")
    return Action(("xargs", "-0", "-r", "-n", "3", *each), given)


def differing(snapshot: Iterable[Entry], live: Iterable[Entry]) -> list[str]:
    """Return the paths that are not the same in both, missing ones among them, in order."""
    return sorted({e.path for e in set(snapshot) ^ set(live)})


def _bytes(raw: bytes) -> int:
    blocks, size_of_block = map(int, raw.split())
    return blocks * size_of_block


def _file(entry: Entry) -> bool:
    return entry.kind.startswith("f:")


def _entries(raw: bytes) -> list[Entry]:
    found = []
    for line in raw.decode(errors="surrogateescape").split("\0"):
        kind, _, rest = line.partition(" ")
        size, _, path = rest.partition(" ")
        if line:
            found.append(Entry(kind, int(size), path))
    return found


_COPY_S = 3600.0  # a data set of some hundred gigabytes on a slow disk


@dataclass(slots=True)
class DirectoryStore:
    """A folder in `home`; `reflinks`: its filesystem shares blocks between files.  `open` asks it.

    A filesystem that clones folders (ZFS) would have a store of its own, as the lab disk has.
    """

    host: Host
    home: Path
    live: Path
    reflinks: bool | None = None
    workers: int = WORKERS
    _sampled: bool = field(default=False, init=False)

    @property
    def place(self) -> StorePlace:
        """Return the folder and how it is restored: one method for the entire campaign."""
        method = "reflink" if self.reflinks else f"copy, {self.workers} workers"
        return StorePlace(self.live, "", method)

    def open(self) -> bool:
        """Empty the live folder; return whether there is a snapshot."""
        self._remove(self.live)
        self._run("mkdir", "-p", str(self.home), str(self.live))
        if self.reflinks is None:
            self.reflinks = _reflinks(self.host, self.home)
        return self.host.run(Action(("test", "-d", str(self._snapshot)))).returncode == 0

    def freeze(self) -> None:
        """Move the live folder to the snapshot, atomically."""
        self._run("sync", "-f", str(self.live))
        self._run("mv", "-T", str(self.live), str(self._snapshot))

    def restore(self, mount: str) -> None:
        """Replace the live folder by the snapshot, and verify that it is complete.

        Raise `HostError` where a name, a right or a size differs, or, of the first restoration,
        a sample of the contents.
        """
        if mount:
            raise HostError("mount options cannot be set on a plain directory; use a lab disk")
        self._remove(self.live)
        try:
            self._copy()
        except HostError:
            self._remove(self._next)  # on a full disk the journal needs its space
            raise
        self._run("mv", "-T", str(self._next), str(self.live))

    def _copy(self) -> None:
        self._remove(self._next)
        entries = ask(self.host, listing(self._snapshot), timeout_s=_COPY_S)
        first, *rest = self._copied(entries)
        self.host.run(first, timeout_s=_COPY_S).check()
        if rest:
            made = ask(self.host, listing(self._next), timeout_s=_COPY_S)
            refuse_swapped(entries, made, self._next)
        for action in rest:
            self.host.run(action, timeout_s=_COPY_S).check()
        self._verify(entries)

    def close(self, *, keep: bool) -> None:
        """Remove the live folder, and the snapshot unless `keep`."""
        self._remove(self.live)
        if not keep:
            self._remove(self.home)

    def _copied(self, entries: list[Entry]) -> list[Action]:
        if self.reflinks:
            same = ("cp", "-a", "--reflink=always", "-T", str(self._snapshot), str(self._next))
            return [Action(same)]
        first = skeleton(self._snapshot, self._next)
        return [first, *contents(self._snapshot, self._next, entries, self.workers)]

    def _verify(self, entries: list[Entry]) -> None:
        there = ask(self.host, listing(self._next), timeout_s=_COPY_S)
        if wrong := differing(entries, there):
            raise HostError(
                f"{self.live}: {len(wrong)} files differ from the snapshot after restoring it, "
                f"for example {wrong[0]!r}; check the disk for errors"
            )
        if not self._sampled:
            compared = sample(self._snapshot, self._next, entries)
            self.host.run(compared, timeout_s=_COPY_S).check()
            self._sampled = True

    @property
    def _snapshot(self) -> Path:
        return self.home / "golden"

    @property
    def _next(self) -> Path:
        """Return where the copy is made: the server's user cannot reach into it there."""
        return self.home / "next"

    def _remove(self, path: Path) -> None:
        self.host.run(Action(("rm", "-rf", "--one-file-system", "--", str(path))), timeout_s=600)

    def _run(self, *argv: str) -> None:
        self.host.run(Action(argv), timeout_s=600).check()


def _reflinks(host: Host, folder: Path) -> bool:
    """Return whether files in `folder` can share blocks (xfs, btrfs): one copy is tried."""
    one, two = folder / ".mydyno-a", folder / ".mydyno-b"
    host.run(Action(("install", "-m", "600", "/dev/stdin", str(one)), b"x" * 4096)).check()
    tried = host.run(Action(("cp", "--reflink=always", str(one), str(two))))
    host.run(Action(("rm", "-f", str(one), str(two)))).check()
    return tried.returncode == 0
