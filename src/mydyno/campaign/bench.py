"""The test bench: what brings a treatment about and names the target of the load."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mydyno.host import Host
from mydyno.model import Settings, Trial
from mydyno.workloads import Target, Workload


class Bench(Protocol):
    """Where trials happen: a private server on a lab disk, or nothing but a program."""

    @property
    def host(self) -> Host:
        """Return the host the load runs on."""
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

    def watched(self, folder: Path) -> AbstractContextManager[None]:
        """Sample host and server into the trial's folder while its load runs."""
        ...

    def ended(self, folder: Path) -> str:
        """Keep the logs of the trial that has just ended; return why its server died, or ``""``."""
        ...


@dataclass(frozen=True, slots=True)
class NoServer:
    """No server and nothing to change: the load is all there is."""

    host: Host
    timed: bool = False

    def opened(self) -> AbstractContextManager[None]:
        """Prepare nothing."""
        return nullcontext()

    def ready(self, trial: Trial, settings: Settings, workload: Workload, folder: Path) -> Target:
        """Return the trial's own folder as the place to work in."""
        del trial, settings, workload
        return Target(work=folder, directory=folder)

    def watched(self, folder: Path) -> AbstractContextManager[None]:
        """Sample nothing: nothing is known of where the load's work is done."""
        del folder
        return nullcontext()

    def ended(self, folder: Path) -> str:
        """Return nothing: there is no server that could have died."""
        del folder
        return ""
