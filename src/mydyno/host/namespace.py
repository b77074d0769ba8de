"""A network namespace of a host: its commands run inside, its files are the host's."""

from dataclasses import dataclass
from pathlib import Path

from mydyno.host.protocol import Completed, Host, Running
from mydyno.model import Action

_PLACE = Path("/run/netns")  # where `ip netns` keeps them


@dataclass(frozen=True, slots=True)
class Namespaced:
    """A host whose commands see only the network of one of its namespaces; needs root."""

    outer: Host
    namespace: str

    @property
    def name(self) -> str:
        """Return the name of the host."""
        return self.outer.name

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Run a command inside."""
        return self.outer.run(self._inside(action), timeout_s=timeout_s)

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start a command inside; `nsenter` is replaced by it, so the pid is the command's."""
        return self.outer.start(self._inside(action), stderr=stderr)

    def push(self, local: Path, remote: Path) -> None:
        """Copy a file to the host."""
        self.outer.push(local, remote)

    def pull(self, remote: Path, local: Path) -> None:
        """Copy a file from the host."""
        self.outer.pull(remote, local)

    def _inside(self, action: Action) -> Action:
        enter = ("nsenter", f"--net={_PLACE / self.namespace}", "--")
        return Action((*enter, *action.argv), action.stdin)
