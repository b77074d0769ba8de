"""The layer of the burst credits that each load on a machine's disks begins with."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mydyno.model import Action, Change, Probe, Settings
from mydyno.stack.doses import CREDITS, credits_change
from mydyno.stack.protocol import IDENTITY, refuse_unknown


@dataclass(frozen=True, slots=True)
class Credits:
    """Key `credits`: a share of a full bucket, by default the `level` of the lab.

    `record` is a file of the machine, empty where its disks never burst: what is in it, QEMU sets
    before each load.  The machine itself does not reach the caps of its disks.
    """

    name: ClassVar[str] = "disk"
    owned: ClassVar[bool] = True
    record: Path
    level: str = "0%"

    def observe(self) -> Probe[Settings]:
        """Return the probe for what the next load begins with."""
        return Probe(Action(("cat", str(self.record))), self.parse)

    def parse(self, raw: bytes) -> Settings:
        """Return what is recorded; data sets of other contents have a record of their own."""
        level = raw.decode(errors="replace").strip()
        return {IDENTITY: str(self.record), **({CREDITS: level} if level else {})}

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the change of the record; raise `SpecError` for another key or level."""
        refuse_unknown(want, (CREDITS,), "disk")
        return credits_change(now, want, self.level, self.written)

    def written(self, level: str) -> Action:
        """Return the command that writes a level, or "" where the disks never burst."""
        return Action(("tee", str(self.record)), level.encode())
