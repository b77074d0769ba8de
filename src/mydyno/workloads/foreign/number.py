"""Printed numbers with their rounding error."""

import re
from dataclasses import dataclass
from math import isfinite

_SHAPE = re.compile(r"([\d.]+)\s*([kKmMgGtT]?)(?:i?[bB])?(?:/s(?:ec)?)?")
_THOUSANDS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "t": 2**40}
_AGREES = 0.001  # ratio: what rounding of times and requests on their way may make


@dataclass(frozen=True, slots=True)
class PrintedNumber:
    """A number that was printed; the true one lies within `half` of it."""

    value: float
    half: float

    def agrees(self, other: float, slack: float = 0.0) -> bool:
        """Return whether `other` may be the number that was printed, give or take 0.1 %."""
        return abs(self.value - other) <= self.half + slack + _AGREES * abs(other)


def shown(text: str) -> PrintedNumber:
    """Return the number in ``12.3k`` or ``88.37``; raise `ValueError` for anything else."""
    return _number(text, _THOUSANDS)


def size(text: str) -> PrintedNumber:
    """Return the bytes in ``16KiB``, ``16Kb``, ``4k`` or ``2G``: powers of 1024."""
    return _number(text, _BINARY)


def _number(text: str, scales: dict[str, int]) -> PrintedNumber:
    found = _SHAPE.fullmatch(text.strip())
    if not found:
        raise ValueError(f"{text!r} is no number")
    digits, scale = found[1], scales[found[2].lower()]
    places = len(digits.partition(".")[2])
    value = float(digits) * scale
    if not isfinite(value):
        raise ValueError(f"{text!r} is no number")
    return PrintedNumber(value, 0.51 * scale / 10**places)


def brief(size_bytes: float) -> str:
    """Return bytes as options name them: 4k, 16k, 1m."""
    for letter, scale in (("m", 2**20), ("k", 2**10)):
        if size_bytes >= scale and size_bytes % scale == 0:
            return f"{size_bytes / scale:g}{letter}"
    return f"{size_bytes:g}"
