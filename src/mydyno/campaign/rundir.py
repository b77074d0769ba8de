"""The run directory: where each thing of a campaign is kept (DESIGN section 9)."""

from dataclasses import dataclass
from pathlib import Path

from mydyno.model import CampaignError


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
        """Return where the spec is kept, overrides included."""
        return self.path / "spec.toml"

    @property
    def facts(self) -> Path:
        """Return the folder of what was observed before anything changed."""
        return self.path / "facts"

    @property
    def work(self) -> Path:
        """Return the folder of servers, golden copies and lab disks; gone when a campaign ends.

        It is absolute: what is carried to another host from there is told by that.
        """
        return self.path.absolute() / "work"

    def trial(self, number: int) -> Path:
        """Return the folder of one trial, as it is or will be."""
        return self.path / "trials" / f"{number:04d}"

    def begin(self, number: int) -> Path:
        """Return an empty folder for a trial; an interrupted attempt's is kept beside it."""
        folder = self.trial(number)
        try:
            if folder.exists():
                attempts = len(list(folder.parent.glob(f"{folder.name}.interrupted-*")))
                folder.rename(folder.with_name(f"{folder.name}.interrupted-{attempts + 1}"))
            folder.mkdir(parents=True)
        except OSError as error:
            raise CampaignError(f"{folder}: {error.strerror}; make room and run again") from error
        return folder
