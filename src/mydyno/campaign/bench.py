"""The test bench: applies a treatment and gives the target of the load."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from mydyno.host import Host
from mydyno.loads import Target, Workload
from mydyno.model import Trial
from mydyno.sample import Sampling
from mydyno.stack.protocol import StackSettings


@dataclass(frozen=True, slots=True)
class TrialInput:
    """A trial as a bench gets it: its treatment's settings, its load, its folder for results."""

    trial: Trial
    settings: StackSettings
    workload: Workload
    folder: Path


class TrialBench(Protocol):
    """A bench during one trial; `ready` is called first, `collect` last and always."""

    def ready(self) -> Target:
        """Apply the treatment and return the target of the load.

        Raises `HostError` where host, server or data set cannot be brought to it; the trial then
        fails and the campaign continues.
        """
        ...

    @property
    def load_host(self) -> Host:
        """Return the host that the load runs on, once the trial is ready."""
        ...

    def sampler(self) -> AbstractContextManager[Sampling]:
        """Sample host and server into the trial's folder while its load runs."""
        ...

    def verify_session(self) -> None:
        """Check the load's session, at its first report, against the treatment.

        Raises `DriftError` where the session does not have the TLS that the treatment sets.
        """
        ...

    def collect(self) -> str:
        """Save the logs of the trial; return why its server died, or ``""``."""
        ...


class Bench(Protocol):
    """Where trials run: a private server on a lab disk, or only a load program."""

    @property
    def timed(self) -> bool:
        """Return whether preparation counts as machine time; else only the load does."""
        ...

    def opened(self) -> AbstractContextManager[None]:
        """Prepare what all trials share; on leaving, restore the host and remove what was made."""
        ...

    def trial(self, inputs: TrialInput) -> TrialBench:
        """Return the bench of one trial; nothing is done yet."""
        ...

    def recover(self) -> None:
        """Restore host and data after a trial with an unknown end, so that the next can begin.

        Raises `HostError` where the host cannot be reached again.
        """
        ...


@dataclass(frozen=True, slots=True)
class LoadOnly:
    """A trial of a load alone: no server, no settings, and no sample, as its place is unknown."""

    load_host: Host
    inputs: TrialInput

    def ready(self) -> Target:
        """Return the trial's own folder as the place to work in."""
        return Target(work=self.inputs.folder, directory=self.inputs.folder)

    def sampler(self) -> AbstractContextManager[Sampling]:
        """Sample nothing."""
        return nullcontext(Sampling(self.inputs.folder))

    def verify_session(self) -> None:
        """Do nothing."""

    def collect(self) -> str:
        """Return an empty string."""
        return ""


@dataclass(frozen=True, slots=True)
class NoServer:
    """No server and no settings: only a load."""

    host: Host
    timed: bool = False

    def opened(self) -> AbstractContextManager[None]:
        """Prepare nothing."""
        return nullcontext()

    def trial(self, inputs: TrialInput) -> TrialBench:
        """Return the bench of a load alone."""
        return LoadOnly(self.host, inputs)

    def recover(self) -> None:
        """Do nothing: nothing was changed."""
