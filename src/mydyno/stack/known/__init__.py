"""What is known of variables, as tables, and how their values are written."""

import re

_SIZE = re.compile(r"(\d+)([KMGTPE])", re.IGNORECASE)
_DECIMAL = re.compile(r"-?\d+\.\d+")
_POWERS = {unit: 1024**power for power, unit in enumerate("KMGTPE", 1)}
_WORDS = {"ON": "1", "TRUE": "1", "OFF": "0", "FALSE": "0"}
_LISTS = frozenset({"optimizer_switch"})  # a part may be named; the rest keeps its value


def normalise(value: str) -> str:
    """Return a value as it is compared: ``1G`` is 1073741824, ``ON`` is 1, ``10.000`` is 10."""
    plain = value.strip()
    size = _SIZE.fullmatch(plain)
    if size:
        return str(int(size.group(1)) * _POWERS[size.group(2).upper()])
    if _DECIMAL.fullmatch(plain):
        return plain.rstrip("0").rstrip(".")
    return _WORDS.get(plain.upper(), plain)


def same(key: str, one: str, other: str) -> bool:
    """Return whether two values of a variable mean the same; letter case and list order do not.

    Of `optimizer_switch`, `other` may name only some of the flags.
    """
    first, second = normalise(one).casefold(), normalise(other).casefold()
    if first == second:
        return True
    if "," not in first + second:
        return False
    flags, named = set(first.split(",")), set(second.split(","))
    return named <= flags if key in _LISTS else flags == named
