"""The test bench: what brings a treatment about and names the target of the load."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mydyno.host import Host
from mydyno.measure import Sampling
from mydyno.model import Settings, Trial
from mydyno.workloads import Target, Workload


class Bench(Protocol):
    """Where trials happen: a private server on a lab disk, or nothing but a program."""

    def load_host(self, workload: Workload) -> Host:
        """Return the host that a load runs on."""
        ...

    @property
    def timed(self) -> bool:
        """Return whether making ready counts as machine time; else only the load tells time."""
        ...

    def opened(self) -> AbstractContextManager[None]:
        """Prepare everything trials share; on leaving, put the host back and end what is ours."""
        ...

    def ready(self, trial: Trial, settings: Settings, workload: Workload, folder: Path) -> Target:
        """Bring the treatment about and return what the load presses on.

        Raises `HostError` where the host, the server or the data set would not come to it; the
        trial then fails and the campaign goes on.
        """
        ...

    def sampler(self, folder: Path) -> AbstractContextManager[Sampling]:
        """Sample host and server into the trial's folder while its load runs."""
        ...

    def verify_session(self, settings: Settings, workload: Workload, folder: Path) -> None:
        """See, at the load's first report, that it came as the treatment wants it to.

        Raises `DriftError` where its session has not the TLS that was asked for.
        """
        ...

    def collect(self, folder: Path) -> str:
        """Keep the logs of the trial that has just ended; return why its server died, or ``""``."""
        ...

    def recover(self) -> None:
        """Bring host and data to where a trial can begin, after one whose end is not known.

        Raises `HostError` where the host does not come back.
        """
        ...


@dataclass(frozen=True, slots=True)
class NoServer:
    """No server and nothing to change: the load is all there is."""

    host: Host
    timed: bool = False

    def load_host(self, workload: Workload) -> Host:
        """Return the only host there is."""
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
        """Sample nothing: nothing is known of where the load's work is done."""
        return nullcontext(Sampling(folder))

    def verify_session(self, settings: Settings, workload: Workload, folder: Path) -> None:
        """See nothing: there is no server to come to."""
        del settings, workload, folder

    def collect(self, folder: Path) -> str:
        """Return nothing: there is no server that could have died."""
        del folder
        return ""

    def recover(self) -> None:
        """Do nothing: nothing was changed."""
