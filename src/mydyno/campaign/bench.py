"""The test bench: applies a treatment and gives the target of the load."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mydyno.host import Host
from mydyno.loads import Target, Workload
from mydyno.model import Settings, Trial
from mydyno.sample import Sampling
from mydyno.stack.protocol import StackSettings


class Bench(Protocol):
    """Where trials run: a private server on a lab disk, or only a load program."""

    def load_host(self, workload: Workload) -> Host:
        """Return the host that a load runs on."""
        ...

    @property
    def timed(self) -> bool:
        """Return whether preparation counts as machine time; else only the load does."""
        ...

    def opened(self) -> AbstractContextManager[None]:
        """Prepare what all trials share; on leaving, restore the host and remove what was made."""
        ...

    def ready(
        self, trial: Trial, settings: StackSettings, workload: Workload, folder: Path
    ) -> Target:
        """Apply the treatment and return the target of the load.

        Raises `HostError` where host, server or data set cannot be brought to it; the trial then
        fails and the campaign continues.
        """
        ...

    def sampler(self, folder: Path) -> AbstractContextManager[Sampling]:
        """Sample host and server into the trial's folder while its load runs."""
        ...

    def verify_session(self, settings: StackSettings, workload: Workload, folder: Path) -> None:
        """Check the load's session, at its first report, against the treatment.

        Raises `DriftError` where the session does not have the TLS that the treatment sets.
        """
        ...

    def collect(self, folder: Path) -> str:
        """Save the logs of the trial that has just ended; return why its server died, or ``""``."""
        ...

    def recover(self) -> None:
        """Restore host and data after a trial with an unknown end, so that the next can begin.

        Raises `HostError` where the host cannot be reached again.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoServer:
    """No server and no settings: only a load."""

    host: Host
    timed: bool = False

    def load_host(self, workload: Workload) -> Host:
        """Return the host."""
        del workload
        return self.host

    def opened(self) -> AbstractContextManager[None]:
        """Prepare nothing."""
        return nullcontext()

    def ready(self, trial: Trial, settings: Settings, workload: Workload, folder: Path) -> Target:
        """Return the trial's own folder as the place to work in."""
        del trial, settings, workload
        return Target(work=folder, directory=folder)

    def sampler(self, folder: Path) -> AbstractContextManager[Sampling]:
        """Sample nothing: it is unknown where the load does its work."""
        return nullcontext(Sampling(folder))

    def verify_session(self, settings: Settings, workload: Workload, folder: Path) -> None:
        """Do nothing: there is no server."""
        del settings, workload, folder

    def collect(self, folder: Path) -> str:
        """Return an empty string: there is no server."""
        del folder
        return ""

    def recover(self) -> None:
        """Do nothing: nothing was changed."""
