"""Variable-length integers (LEB128) of the sampler's file, decoded many at a time."""

import numpy as np
from numpy.typing import NDArray

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
