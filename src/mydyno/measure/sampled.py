"""What the sampler saw: columns of values over its ticks, and the times at which they were read."""

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
READ_AT = "probe.read_at"  # of each source: when it was read, in seconds since the head


class Head(msgspec.Struct, frozen=True):
    """Which host, which clocks; `mono_ns` and `wall_ns` are the same moment."""

    wall_ns: int
    mono_ns: int
    interval_ns: int
    hz: int = 100
    cpus: int = 1
    host: str = ""
    boot_id: str = ""
    version: str = ""


class Column(msgspec.Struct, frozen=True):
    """One quantity: `name` of the instance `of`, in base units, integer times `scale`."""

    name: str
    of: str = ""
    unit: str = ""
    kind: str = "counter"
    scale: float = 1.0
    source: str = "host"


class Note(msgspec.Struct, frozen=True):
    """What happened at tick `seq`: gap, back, restart, gone, appeared, clock."""

    seq: int
    source: str = ""
    event: str = ""
    of: str = ""
    text: str = ""


class End(msgspec.Struct, frozen=True):
    """How an orderly sampling ended, and how many ticks it had and missed."""

    seq: int = 0
    reason: str = ""
    ticks: int = 0
    missed: int = 0


@dataclass(frozen=True, slots=True)
class Tick:
    """One tick: when it was, and each column's value, NaN where it was not read in this tick."""

    seq: int
    mono_s: float
    wall_s: float
    values: Values


@dataclass(frozen=True, slots=True)
class Sampled:
    """A whole file: `values[tick, column]`, times in seconds; `end` is None after a kill."""

    head: Head
    columns: Sequence[Column]
    seqs: NDArray[np.int64]
    mono_s: Values
    wall_s: Values
    values: NDArray[np.float64]
    notes: Sequence[Note]
    end: End | None = None

    def find(self, name: str, of: str = "") -> Values | None:
        """Return a column's values, one for each tick, or None where there is no such column."""
        for number, column in enumerate(self.columns):
            if (column.name, column.of) == (name, of):
                return np.asarray(self.values[:, number])
        return None

    def instances(self, name: str) -> tuple[str, ...]:
        """Return the instances that have a column of this name."""
        return tuple(c.of for c in self.columns if c.name == name)

    def read_at(self, name: str, of: str = "") -> Values:
        """Return when a column was read in each tick, in monotonic seconds; NaN where it was not.

        Raises `KeyError` where there is no such column.
        """
        stamps = self.find(READ_AT, self._column(name, of).source)
        return self.mono_s if stamps is None else stamps

    def restarts(self, name: str, of: str = "") -> NDArray[np.int64]:
        """Return the ticks in which what a column counts was another process's from then on.

        Raises `KeyError` where there is no such column.
        """
        source, role = self._column(name, of).source, of.partition("/")[0]
        seqs = [
            note.seq
            for note in self.notes
            if (note.event, note.source) == ("restart", source) and note.of in {"", role}
        ]
        return np.unique(np.array(seqs, dtype=np.int64))

    def _column(self, name: str, of: str) -> Column:
        for column in self.columns:
            if (column.name, column.of) == (name, of):
                return column
        raise KeyError(name, of)
