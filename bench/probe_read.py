"""What the bench needs of the sampler's file, counted from its bytes and not by its own reader."""

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from probe_process import Fault

_MAGIC = b"mydyno-probe 1\n"
_HEAD = struct.Struct("<BI")


@dataclass(frozen=True, slots=True)
class Ticks:
    """The ticks of a file: how many were due, how many are not there, and how late they were.

    `late` is p50, p99 and the largest, in seconds; `declared` is the number of
    missed ticks by the file's own end.
    """

    due: int
    missed: int
    declared: int
    late: tuple[float, float, float]
    values: int


def ticks(path: Path) -> Ticks:
    """Return what a finished file holds; raise `Fault` if it is not complete."""
    raw = path.read_bytes()
    seqs: list[int] = []
    late: list[float] = []
    present: set[int] = set()
    interval = 0
    end: dict[str, int] | None = None
    for kind, payload in _frames(raw):
        if kind == b"H":
            interval = json.loads(payload)["interval_ns"]
        elif kind == b"T":
            seq, begin, present = _tick(payload, present)
            seqs.append(seq)
            late.append((begin - seq * interval) / 1e9)
        elif kind == b"E":
            end = json.loads(payload)
    if end is None or not seqs:
        raise Fault(f"{path}: no end, or no tick")
    due = end["ticks"] + end["missed"]
    late.sort()
    return Ticks(due, due - len(seqs), end["missed"], _quantiles(late), len(present))


def last_values(path: Path) -> int:
    """Return how many columns have a value at the last tick."""
    return ticks(path).values


def _quantiles(ordered: list[float]) -> tuple[float, float, float]:
    last = len(ordered) - 1
    return ordered[last // 2], ordered[round(last * 0.99)], ordered[last]


def _frames(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not raw.startswith(_MAGIC):
        raise Fault("not a file of the sampler's")
    at = len(_MAGIC)
    while at + _HEAD.size <= len(raw):
        kind, length = _HEAD.unpack_from(raw, at)
        end = at + _HEAD.size + length
        if raw[end : end + 4] != struct.pack("<I", zlib.crc32(raw[at:end])):
            return
        yield bytes([kind]), raw[at + _HEAD.size : end]
        at = end + 4


def _tick(payload: bytes, before: set[int]) -> tuple[int, int, set[int]]:
    """Return a tick's number, when it began, and the columns that have a value after it."""
    numbers = _varints(payload)
    (seq, _), (begin, _), _took, _wall, (runs, _) = islice(numbers, 5)
    gone: set[int] = set()
    column = 0
    for _ in range(runs):
        (gap, _), (length, _) = islice(numbers, 2)
        column += gap
        gone.update(range(column, column + length))
        column += length
    size, at = next(numbers)
    bits = int.from_bytes(payload[at : at + size], "little")
    entries = {i for i in range(bits.bit_length()) if bits >> i & 1}
    return seq, begin, (before - gone) | entries


def _varints(payload: bytes) -> Iterator[tuple[int, int]]:
    """Yield each unsigned number with the place behind it."""
    value = shift = 0
    for at, byte in enumerate(payload):
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            yield value, at + 1
            value = shift = 0
