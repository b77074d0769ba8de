"""The run directory: the paths of a campaign's files, and the check of who owns it."""

import os
from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host
from mydyno.host.files import distrust, resolved
from mydyno.journal.register import MARKER, marked, new_id
from mydyno.model import CampaignError, JournalError, RefusedError

_OLDER = ("journal.jsonl", "spec.toml")  # a run directory that was begun without a marker


@dataclass(frozen=True, slots=True)
class RunDir:
    """The paths of one run directory."""

    path: Path

    @property
    def journal(self) -> Path:
        """Return the journal's path."""
        return self.path / "journal.jsonl"

    @property
    def spec(self) -> Path:
        """Return the path of the spec, overrides included."""
        return self.path / "spec.toml"

    @property
    def facts(self) -> Path:
        """Return the folder of facts observed before anything was changed."""
        return self.path / "facts"

    @property
    def work(self) -> Path:
        """Return the folder of servers, data sets and lab disks, removed when a campaign ends.

        It is absolute: files below it are recognised by that when uploaded to another host.
        """
        return self.path.absolute() / "work"

    def claim(self, here: Host) -> None:
        """Make and mark the directory; it may be new, empty, or marked already.

        Raises `RefusedError` for one that contains anything else, or, as root, that another user
        can change.
        """
        there = next(p for p in (self.path, *self.path.absolute().parents) if p.exists())
        if not there.is_dir():
            raise JournalError(f"{there}: not a folder; choose another directory with -o")
        if os.geteuid() == 0 and (problem := distrust(here, resolved(here, self.path))):
            raise RefusedError(
                f"{self.path}: not safe for root: {problem}; choose another directory with -o"
            )
        try:
            self._make()
            if not marked(self.path):
                with (self.path / MARKER).open("x", encoding="utf-8") as marker:
                    marker.write(f"{new_id()}\n")
        except OSError as error:
            raise JournalError(
                f"{self.path}: {error.strerror}; choose another directory with -o"
            ) from error

    def _make(self) -> None:
        """Make the directory and its parents, passable for the server's user."""
        mode = 0o711 if os.geteuid() == 0 else 0o700
        for folder in (*reversed(self.path.absolute().parents), self.path):
            if not folder.exists():
                folder.mkdir()
                folder.chmod(mode)
        names = {p.name for p in self.path.iterdir()}
        if names and not marked(self.path) and not names.issuperset(_OLDER):
            shown = ", ".join(sorted(names)[:3])
            raise RefusedError(
                f"{self.path}: not a run directory (contains {shown}); choose a new or an empty "
                "one with -o"
            )

    def trial(self, number: int) -> Path:
        """Return the folder of one trial, whether or not it exists."""
        return self.path / "trials" / f"{number:04d}"

    def begin(self, number: int) -> Path:
        """Return an empty folder for a trial; that of an interrupted attempt is renamed."""
        folder = self.trial(number)
        try:
            if folder.exists():
                attempts = len(list(folder.parent.glob(f"{folder.name}.interrupted-*")))
                folder.rename(folder.with_name(f"{folder.name}.interrupted-{attempts + 1}"))
            folder.mkdir(parents=True)
        except OSError as error:
            raise CampaignError(
                f"{folder}: {error.strerror}; free disk space and run again"
            ) from error
        return folder
