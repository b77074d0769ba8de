"""One interval's latency counts as an HdrHistogram, with the quantiles reported every second."""

import base64
import binascii
import struct
import zlib
from collections.abc import Iterable

from mydyno.model.values import DIGITS, HIGHEST_US, levels, percentile_us

_HEAD = struct.Struct(">II")  # cookie, length of what follows compressed
_SETTINGS = struct.Struct(">IIiiQQd")  # cookie, length, offset, digits, lowest, highest, ratio
_COOKIES = (0x1C849314, 0x1C849313)  # of a compressed and of a plain V2 encoding
_LARGEST = 1 << 20  # bytes of a histogram; one of three digits has some 60 KB at most
_HIGHEST = 1 << 53  # counts and latencies that a float holds exactly
_BYTES_OF_COUNT = 9
_QUANTILES = {50.0: "latency_p50_s", 95.0: "latency_p95_s", 99.0: "latency_p99_s"}

QUANTILE_NAMES = (*_QUANTILES.values(), "latency_max_s")


def recorded(counts: Iterable[tuple[float, int]]) -> tuple[str, dict[str, float]]:
    """Return events counted by microseconds as an HdrHistogram and its quantiles in seconds.

    The histogram is V2 compressed, base64, with three digits from 1 us to an hour (G. Tene,
    2012); values outside are counted at its ends.  Without events: an empty text, no quantiles.
    Raises `ValueError` for a count or a latency below zero.
    """
    import numpy as np  # noqa: PLC0415 - few commands run a load
    from hdrh.histogram import HdrHistogram  # noqa: PLC0415

    pairs = np.array([*counts], dtype=np.float64).reshape(-1, 2)
    if len(bad := pairs[~(pairs >= 0).all(axis=1)]):
        raise ValueError(f"{bad[0, 1]:.0f} events of {bad[0, 0]} us")
    us, events = pairs[pairs[:, 1] > 0].T
    if not len(us):
        return "", {}
    histogram = HdrHistogram(1, HIGHEST_US, DIGITS)
    us, magnitude = np.clip(np.rint(us), 1, HIGHEST_US), histogram.sub_bucket_half_count_magnitude
    bucket = np.maximum(np.frexp(us)[1] - magnitude - 1, 0)  # of the bits that are left out
    places = (bucket << magnitude) + (us.astype(np.int64) >> bucket)
    np.add.at(np.ctypeslib.as_array(histogram.counts), places, events.astype(np.uint64))
    ends = int(places.min()), int(places.max())
    histogram.set_internal_tacking_values(*ends, int(events.sum()))
    found = levels(histogram)
    quantiles = {name: percentile_us(found, percent) / 1e6 for percent, name in _QUANTILES.items()}
    quantiles["latency_max_s"] = found[-1].high / 1e6
    return histogram.encode().decode(), quantiles


def checked(encoded: str) -> str:
    """Return what is wrong with a histogram of others, V2 compressed and base64; empty if nothing.

    What it passes can be decoded, merged and shown, within a few MB of memory.
    """
    try:
        raw = base64.b64decode(encoded, validate=True)
        cookie, length = _HEAD.unpack_from(raw)
        unpacker = zlib.decompressobj()
        body = unpacker.decompress(raw[_HEAD.size :], _LARGEST)
        inner, size, offset, digits, lowest, highest, _ = _SETTINGS.unpack_from(body)
    except (binascii.Error, zlib.error, struct.error) as error:
        return f"not an HdrHistogram (V2 compressed, base64): {error}"
    counts = body[_SETTINGS.size :]
    valid = (cookie, inner) == _COOKIES and unpacker.eof and not unpacker.unused_data
    if not valid or len(raw) != _HEAD.size + length or len(counts) != size:
        return "not an HdrHistogram (V2 compressed, base64), or cut off"
    if offset or not (1 <= digits <= DIGITS and lowest >= 1 and 2 * lowest <= highest <= _HIGHEST):
        return (
            f"{digits} digits from {lowest} to {highest}; give at most {DIGITS} digits, "
            "in microseconds"
        )
    return _counts(counts, digits, lowest, highest) or _too_long(encoded)


def _counts(raw: bytes, digits: int, lowest: int, highest: int) -> str:
    """Return what is wrong with the counts: zigzag LEB128, a negative one skips places."""
    places = total = at = 0
    while at < len(raw):
        value, at = _count(raw, at)
        if at > len(raw):
            return "its counts are cut off"
        places += 1 if value >= 0 else -value
        total += max(value, 0)
    if places > _places(digits, lowest, highest):
        return f"{places} counts do not fit {digits} digits from {lowest} to {highest}"
    return f"{total} events in it" if total > _HIGHEST else ""


def _too_long(encoded: str) -> str:
    """Return what is wrong with the longest latency of a valid histogram."""
    from hdrh.histogram import HdrHistogram  # noqa: PLC0415 - few commands run a load

    longest_us = int(HdrHistogram.decode(encoded).get_max_value())
    return f"a latency of {longest_us} us, over an hour" if longest_us > HIGHEST_US else ""


def _count(raw: bytes, at: int) -> tuple[int, int]:
    """Return a count and where the next one begins; behind the end if it is cut off."""
    value = shift = 0
    for length in range(1, _BYTES_OF_COUNT + 1):
        if at >= len(raw):
            return 0, len(raw) + 1
        byte = raw[at]
        at += 1
        last = length == _BYTES_OF_COUNT  # has eight bits
        value |= (byte if last else byte & 0x7F) << shift
        if last or byte < 0x80:  # noqa: PLR2004 - the bit set where more bytes follow
            break
        shift += 7
    return (value >> 1) ^ -(value & 1), at


def _places(digits: int, lowest: int, highest: int) -> int:
    """Return how many counts a histogram of these settings has (G. Tene, 2012)."""
    half: int = 1 << (2 * 10**digits - 1).bit_length() - 1
    magnitude = lowest.bit_length() - 1
    buckets, reach = 1, 2 * half << magnitude
    while reach <= highest:
        reach <<= 1
        buckets += 1
    return (buckets + 1) * half
