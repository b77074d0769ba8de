"""Reading what people write for durations, sizes and shares of the host."""

import re
from math import isfinite

from mydyno.model import SpecError

_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def duration_s(text: str, place: str) -> float:
    """Return ``90s``, ``20m``, ``1.5h`` or ``1h30m`` in seconds."""
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(n + u for n, u in parts) != text.replace(" ", ""):
        raise SpecError(f"{place}: {text!r} is not a duration; write 90s, 20m or 1h")
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
    if not isfinite(seconds):
        raise SpecError(f"{place}: the duration has too many digits; write 90s, 20m or 1h")
    return seconds


def size_bytes(text: str, place: str) -> int:
    """Return ``8G``, ``512M`` or ``4096`` in bytes; suffixes are powers of 1024."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise SpecError(f"{place}: {text!r} is not a size; write 512M or 8G")
    size = float(found[1]) * _BYTES[found[2].upper()]
    if not isfinite(size):
        raise SpecError(f"{place}: the size has too many digits; write 512M or 8G")
    return int(size)


def resolve(text: str, *, memory_bytes: int, cores: int) -> str:
    """Return a relative value for this host: ``70%`` of memory in MiB steps, ``1x`` cores."""
    if share := re.fullmatch(r"(\d+(?:\.\d+)?)%", text):
        mebibyte = 1 << 20
        return str(int(memory_bytes * float(share[1]) / 100) // mebibyte * mebibyte)
    if times := re.fullmatch(r"(\d+(?:\.\d+)?)x", text):
        return str(max(1, round(cores * float(times[1]))))
    return text
