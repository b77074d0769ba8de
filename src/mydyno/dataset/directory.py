"""A data set in a plain directory; its snapshot is restored by reflink or by copying."""

from dataclasses import dataclass, field
from pathlib import Path

from mydyno.dataset import copying
from mydyno.host import Host, ask
from mydyno.model import Action, HostError

_COPY_S = 3600.0  # a data set of some hundred gigabytes on a slow disk


@dataclass(slots=True)
class DirectoryStore:
    """A folder in `home`; `reflinks` says that its filesystem shares blocks between files.

    A filesystem that clones whole folders (ZFS) would have a store of its own, as the lab disk has.
    """

    host: Host
    home: Path
    live: Path
    reflinks: bool
    disk: str = ""
    workers: int = copying.WORKERS
    _sampled: bool = field(default=False, init=False)

    @property
    def method(self) -> str:
        """Return how it is restored: one method for the whole campaign."""
        return "reflink" if self.reflinks else f"copy, {self.workers} workers"

    def open(self) -> bool:
        """Empty the live folder; return whether there is a snapshot."""
        self._remove(self.live)
        self._run("mkdir", "-p", str(self.home), str(self.live))
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
        self._remove(self._next)
        entries = ask(self.host, copying.listing(self._snapshot), timeout_s=_COPY_S)
        for action in self._copied(entries):
            self.host.run(action, timeout_s=_COPY_S).check()
        self._verify(entries)
        self._run("mv", "-T", str(self._next), str(self.live))

    def before_load(self) -> None:
        """Sync the dirty pages of the copy, so that every load begins with an idle disk."""
        self._run("sync", "-f", str(self.live))

    def close(self, *, keep: bool) -> None:
        """Remove the live folder, and the snapshot unless `keep`."""
        self._remove(self.live)
        if not keep:
            self._remove(self.home)

    def _copied(self, entries: list[copying.Entry]) -> list[Action]:
        if self.reflinks:
            same = ("cp", "-a", "--reflink=always", "-T", str(self._snapshot), str(self._next))
            return [Action(same)]
        first = copying.skeleton(self._snapshot, self._next)
        return [first, *copying.contents(self._snapshot, self._next, entries, self.workers)]

    def _verify(self, entries: list[copying.Entry]) -> None:
        there = ask(self.host, copying.listing(self._next), timeout_s=_COPY_S)
        if wrong := copying.differing(entries, there):
            raise HostError(
                f"{self.live}: {len(wrong)} files differ from the snapshot after restoring it, "
                f"for example {wrong[0]!r}; check the disk for errors"
            )
        if not self._sampled:
            compared = copying.sample(self._snapshot, self._next, entries)
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


def reflinks(host: Host, folder: Path) -> bool:
    """Return whether files in `folder` can share blocks (xfs, btrfs): one copy is tried."""
    one, two = folder / ".mydyno-a", folder / ".mydyno-b"
    host.run(Action(("install", "-m", "600", "/dev/stdin", str(one)), b"x" * 4096)).check()
    tried = host.run(Action(("cp", "--reflink=always", str(one), str(two))))
    host.run(Action(("rm", "-f", str(one), str(two)))).check()
    return tried.returncode == 0
