"""Control of a running mydyno-disk through its file `ctl`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from mydyno.host import Host
from mydyno.model import Action, HostError

_PATIENCE_S = 5.0  # a reply takes a millisecond


@dataclass(frozen=True, slots=True)
class Control:
    """Commands to, and the state of, one lab disk."""

    host: Host
    path: Path

    def order(self, line: str) -> None:
        """Send one command; raise `HostError` with the daemon's message if it refuses."""
        action = Action(("tee", str(self.path)), f"{line}\n".encode())
        done = self.host.run(action, timeout_s=_PATIENCE_S)
        if done.returncode:
            words = self.state().get("last_error") or done.stderr.decode(errors="replace").strip()
            raise HostError(f"{self.path}: {line}: {words}")

    def state(self) -> Mapping[str, Any]:
        """Return the disk's state: rates per second, sizes in bytes, credits in units."""
        done = self.host.run(Action(("cat", str(self.path))), timeout_s=_PATIENCE_S).check()
        state: Mapping[str, Any] = msgspec.json.decode(done.stdout, type=dict[str, Any])
        return state
