"""The records of virtual machines: one file for each, written before each step."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from mydyno.journal.state import state_folder
from mydyno.lab.registry import record_path, save
from mydyno.lab.vm.values import Phase, VmState
from mydyno.model import HostError


@dataclass(frozen=True, slots=True)
class Records:
    """The folder of the records; each names the boot of its processes."""

    folder: Path

    def write(self, state: VmState) -> VmState:
        """Record a state atomically, and return it."""
        save(self._path(state.spec.lab), msgspec.json.encode(state))
        return state

    def step(self, state: VmState, phase: Phase) -> VmState:
        """Record that a phase begins, and return the state in it."""
        return self.write(replace(state, phase=phase))

    def read(self, lab: str) -> VmState | None:
        """Return the state of one machine, or None; raise `HostError` if it cannot be read."""
        path = self._path(lab)
        try:
            return msgspec.json.decode(path.read_bytes(), type=VmState)
        except FileNotFoundError:
            return None
        except msgspec.DecodeError as error:
            raise HostError(
                f"{path}: not a valid machine record ({error}); check for its QEMU with "
                "`pgrep -a qemu`, then remove the file"
            ) from error

    def all(self) -> Sequence[VmState]:
        """Return the state of every machine, by name."""
        states = (self.read(path.stem) for path in sorted(self.folder.glob("[!.]*.json")))
        return tuple(state for state in states if state is not None)

    def forget(self, lab: str) -> None:
        """Remove the record of a machine that is gone."""
        self._path(lab).unlink(missing_ok=True)

    def _path(self, lab: str) -> Path:
        return record_path(self.folder, lab)


def records() -> Records:
    """Return the records of this machine's VMs."""
    return Records(state_folder("vms"))
