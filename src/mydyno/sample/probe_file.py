"""The probe's file, decoded."""

import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from mydyno.model import HostError

_PAYLOAD, _MORE, _BITS = 0x7F, 0x80, 7
LONGEST = 10  # bytes of an integer of 64 bits


def unsigned(raw: bytes, start: int) -> tuple[int, int]:
    """Return the unsigned integer at `start` and where the next one begins.

    Raises `IndexError` where the bytes end within it, `ValueError` where it is too long.
    """
    value = 0
    for place in range(LONGEST):
        byte = raw[start + place]
        value |= (byte & _PAYLOAD) << place * _BITS
        if byte < _MORE:
            return value, start + place + 1
    raise ValueError(f"an integer of more than {LONGEST} bytes")


def signed(raw: bytes, start: int) -> tuple[int, int]:
    """Return the zigzag integer at `start` and where the next one begins."""
    value, start = unsigned(raw, start)
    return (value >> 1) ^ -(value & 1), start


def signed_all(raw: bytes) -> NDArray[np.int64]:
    """Return all zigzag integers of `raw`, of 64 bits each; a cut last one is left out.

    Takes some 40 bytes of memory for each of `raw`; raises `ValueError` where one is too long.
    """
    octets = np.frombuffer(raw, dtype=np.uint8)
    ends = np.flatnonzero(octets < _MORE) + 1
    if not len(ends):
        return np.empty(0, dtype=np.int64)
    octets = octets[: ends[-1]]
    starts = np.concatenate(([0], ends[:-1]))
    if (ends - starts).max() > LONGEST:
        raise ValueError(f"an integer of more than {LONGEST} bytes")
    place = np.arange(len(octets)) - np.repeat(starts, ends - starts)
    parts = (octets & _PAYLOAD).astype(np.uint64) << (place * _BITS).astype(np.uint64)
    zigzag = np.add.reduceat(parts, starts)
    return (zigzag >> np.uint64(1)).astype(np.int64) ^ -(zigzag & np.uint64(1)).astype(np.int64)


Values = NDArray[np.float64]
READ_AT = "probe.read_at"  # of each source: when it was read, in seconds since the head


class Head(msgspec.Struct, frozen=True):
    """Which host, which clocks; `mono_ns` and `wall_ns` are the same moment."""

    wall_ns: int
    mono_ns: int
    interval_ns: int
    cpus: int = 1
    host: str = ""
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
class SampledTick:
    """One tick: when it was, and each column's value, NaN where it was not read in this tick."""

    seq: int
    mono_s: float
    wall_s: float
    values: Values


@dataclass(frozen=True)  # no slots: its columns are numbered once
class Sampled:
    """A complete file: `values[tick, column]`, times in seconds; `end` is None after a kill."""

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
        number = self._numbers.get((name, of))
        return None if number is None else np.asarray(self.values[:, number])

    def put(self, changed: Mapping[tuple[str, str], Values]) -> "Sampled":
        """Return it with other values in some columns, by name and instance."""
        values = self.values.copy()
        for key, column in changed.items():
            values[:, self._numbers[key]] = column
        return replace(self, values=values)

    def instances(self, name: str) -> tuple[str, ...]:
        """Return the instances that have a column of this name."""
        return tuple(c.of for c in self.columns if c.name == name)

    def read_at(self, name: str, of: str = "") -> Values:
        """Return when a column was read in each tick, in monotonic seconds; NaN where it was not.

        Raises `KeyError` where there is no such column.
        """
        stamps = self.find(READ_AT, self.columns[self._numbers[name, of]].source)
        return self.mono_s if stamps is None else stamps

    def restarts(self, name: str, of: str = "") -> NDArray[np.int64]:
        """Return the ticks in which what a column counts was another process's from then on.

        Raises `KeyError` where there is no such column.
        """
        source, role = self.columns[self._numbers[name, of]].source, of.partition("/")[0]
        seqs = [
            note.seq
            for note in self.notes
            if (note.event, note.source) == ("restart", source) and note.of in {"", role}
        ]
        return np.unique(np.array(seqs, dtype=np.int64))

    @cached_property
    def _numbers(self) -> dict[tuple[str, str], int]:
        numbered = reversed([*enumerate(self.columns)])  # the first one, should a name come twice
        return {(column.name, column.of): number for number, column in numbered}


_MAGIC = b"mydyno-probe 1\n"
_FRAME = struct.Struct("<cI")
_SUM = struct.Struct("<I")
_NS = 1e-9
_LARGEST = 2**63 - 1
_MOST_COLUMNS = 1 << 15
_LARGEST_FRAME = 1 << 26
_CELLS, _CELLS_A_BYTE = 1 << 24, 16  # a sampler writes about a byte for each value of a tick


class ProbeFileError(HostError):
    """The file is not one of the sampler's, or of a version not known here."""


class Reader:
    """Takes a file's bytes as they come and gives its ticks."""

    def __init__(self, name: str = "probe.bin") -> None:
        """Read nothing yet; `name` is for error messages."""
        self.head: Head | None = None
        self.columns: list[Column] = []
        self.notes: list[Note] = []
        self.end: End | None = None
        self.name = name
        self._rest = b""
        self._begun = False
        self._seq = -1
        self._now = np.zeros(0, dtype=np.int64)
        self._present = np.zeros(0, dtype=bool)
        self._scales = np.zeros(0)
        self._bytes = 0
        self._cells = 0
        self._sources: dict[str, int] = {}
        self._of: list[int] = []  # each column's source, as a number
        self._stamps: dict[int, int] = {}  # each source's column probe.read_at
        self._read_by = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))  # the same

    def take(self, raw: bytes) -> Iterator[SampledTick]:
        """Yield the ticks that are complete with `raw`.

        Raises `ProbeFileError` for what is not a file of the sampler's.
        """
        self._rest += raw
        self._bytes += len(raw)
        start = self._magic()
        try:
            while start is not None and (frame := self._frame(start)):
                kind, payload, start = frame
                if row := self._framed(kind, payload):
                    yield row
        except (IndexError, ValueError, OverflowError, RecursionError) as error:  # msgspec's too
            raise ProbeFileError(
                f"{self.name}: a frame with a right checksum cannot be read ({error}); "
                "it was written by another version of mydyno-probe"
            ) from error
        finally:
            self._rest = self._rest[start or 0 :]

    def _magic(self) -> int | None:
        """Return where the frames begin, None as long as the first line is incomplete."""
        if self._begun:
            return 0
        if len(self._rest) < len(_MAGIC) and _MAGIC.startswith(self._rest):
            return None
        if not self._rest.startswith(_MAGIC):
            raise ProbeFileError(
                f"{self.name}: begins with {self._rest[:16]!r}, not with {_MAGIC!r}: "
                "not a file of mydyno-probe, or one of another version"
            )
        self._begun = True
        return len(_MAGIC)

    def _frame(self, start: int) -> tuple[bytes, bytes, int] | None:
        """Return kind, payload and end of the frame at `start`; None where it is not complete."""
        body = start + _FRAME.size
        if len(self._rest) < body:
            return None
        kind, length = _FRAME.unpack_from(self._rest, start)
        end = body + length + _SUM.size
        if length <= _LARGEST_FRAME and len(self._rest) < end:
            return None
        frame = self._rest[start : end - _SUM.size]
        if length > _LARGEST_FRAME or zlib.crc32(frame) != _SUM.unpack_from(self._rest, end - 4)[0]:
            at = self._bytes - len(self._rest) + start
            raise ProbeFileError(
                f"{self.name}: the frame at byte {at} is damaged: its checksum is wrong; "
                f"restore the file from a copy, or cut it there: truncate -s {at}"
            )
        return kind, frame[_FRAME.size :], end

    def _framed(self, kind: bytes, payload: bytes) -> SampledTick | None:
        match kind:
            case b"T":
                return self._tick(payload)
            case b"H":
                self.head = msgspec.json.decode(payload, type=Head)
            case b"C":
                self._define(msgspec.json.decode(payload, type=list[Column]))
            case b"N":
                self.notes.append(msgspec.json.decode(payload, type=Note))
            case b"E":
                self.end = msgspec.json.decode(payload, type=End)
            case _:
                pass  # a kind of a later minor version
        return None

    def _define(self, fresh: list[Column]) -> None:
        more = len(fresh)
        if len(self.columns) + more > _MOST_COLUMNS:
            raise ValueError(f"more than {_MOST_COLUMNS} columns")
        for column in fresh:
            # a time of reading belongs to the source whose time it is
            owner = column.of if column.name == READ_AT else column.source
            source = self._sources.setdefault(owner, len(self._sources))
            if column.name == READ_AT:
                self._stamps[source] = len(self.columns)
            self.columns.append(column)
            self._of.append(source)
        self._read_by = (
            np.array([*self._stamps], dtype=np.int64),
            np.array([*self._stamps.values()], dtype=np.int64),
        )
        self._now = np.concatenate((self._now, np.zeros(more, dtype=np.int64)))
        self._present = np.concatenate((self._present, np.zeros(more, dtype=bool)))
        self._scales = np.concatenate((self._scales, [c.scale for c in fresh]))

    def _tick(self, payload: bytes) -> SampledTick:
        if self.head is None:
            raise ValueError("a tick before the head")
        seq, at = unsigned(payload, 0)
        if not self._seq < seq <= _LARGEST:
            raise ValueError(f"tick {seq} after tick {self._seq}")
        self._seq = seq
        self._cells += len(self.columns)
        if self._cells > _CELLS + _CELLS_A_BYTE * self._bytes:
            raise ValueError(f"{len(self.columns)} columns a tick in {self._bytes} bytes")
        begin_ns, at = unsigned(payload, at)
        _, at = unsigned(payload, at)
        drift_ns, at = signed(payload, at)
        at = self._gone(payload, at)
        touched = self._entries(payload, at)
        wall_ns = self.head.wall_ns + begin_ns + drift_ns
        return SampledTick(seq, begin_ns * _NS, wall_ns * _NS, self._valid(touched))

    def _gone(self, payload: bytes, at: int) -> int:
        runs, at = unsigned(payload, at)
        first = 0
        for _ in range(runs):
            gap, at = unsigned(payload, at)
            length, at = unsigned(payload, at)
            self._present[first + gap : first + gap + length] = False
            first += gap + length
        return at

    def _entries(self, payload: bytes, at: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """Add the tick's deltas; return the columns that have one."""
        size, at = unsigned(payload, at)
        bits = np.unpackbits(
            np.frombuffer(payload, np.uint8, count=size, offset=at), bitorder="little"
        )
        touched = np.flatnonzero(bits)
        if len(payload) - at - size > LONGEST * len(touched):
            raise ValueError(f"{len(payload)} bytes for {len(touched)} columns")
        deltas = signed_all(payload[at + size :])
        if len(deltas) != len(touched):
            raise ValueError(f"{len(touched)} columns but {len(deltas)} values")
        self._now[touched] += deltas
        self._present[touched] = True
        return touched

    def _valid(
        self, touched: np.ndarray[tuple[int], np.dtype[np.int64]]
    ) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return the values in base units; those of a source that was not read now are NaN."""
        read = np.ones(len(self._sources), dtype=bool)
        fresh = np.zeros(len(self.columns), dtype=bool)
        fresh[touched] = True
        sources, stamps = self._read_by
        read[sources] = fresh[stamps]
        valid = self._present & read[self._of]
        return np.where(valid, self._now * self._scales, np.nan)


def is_probe_file(path: Path) -> bool:
    """Return whether a file begins as one of the sampler's, of whichever version."""
    name = _MAGIC.split(b" ")[0]
    try:
        with path.open("rb") as file:
            return file.read(len(name)) == name
    except OSError:
        return False


def read(path: Path) -> Sampled:
    """Return all that a file holds.

    Raises `ProbeFileError` for another kind or version of file and for one without a head.
    """
    reader = Reader(str(path))
    try:
        rows = list(reader.take(path.read_bytes()))
    except OSError as error:
        raise ProbeFileError(f"{path}: {error.strerror}") from error
    return sampled(reader, rows)


def sampled(reader: Reader, rows: Sequence[SampledTick]) -> Sampled:
    """Return some ticks of a reader's as a sample of their own; raise `ProbeFileError` if headless.

    A column has no value in the ticks before it was defined.
    """
    if reader.head is None:
        raise ProbeFileError(
            f"{reader.name}: ends before its head; the sampler was cut off at its start"
        )
    values = np.full((len(rows), len(reader.columns)), np.nan)
    for number, row in enumerate(rows):
        values[number, : len(row.values)] = row.values
    return Sampled(
        head=reader.head,
        columns=tuple(reader.columns),
        seqs=np.array([row.seq for row in rows], dtype=np.int64),
        mono_s=np.array([row.mono_s for row in rows]),
        wall_s=np.array([row.wall_s for row in rows]),
        values=values,
        notes=tuple(reader.notes),
        end=reader.end,
    )
