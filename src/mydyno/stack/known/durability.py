"""Whether a server setting lets a crash lose more than the baseline's would (FACTS 6.3)."""

import math
import tomllib
from functools import cache
from importlib import resources

from mydyno.model import Durability
from mydyno.stack.known.values import normalise

_LOSES_NOTHING = 0.0


def durability(key: str, before: str, after: str) -> Durability:
    """Return WEAKER if `after` may lose or corrupt what `before` would keep, else SAME."""
    weaker = _weakness(key, after) > _weakness(key, before)
    return Durability.WEAKER if weaker else Durability.SAME


def _weakness(key: str, value: str) -> float:
    """Return 0 for the safe values, more for weaker ones; only its order has a meaning."""
    plain = normalise(value).casefold()
    if key == "sync_binlog":
        return _unsynced_groups(plain)
    for step, values in enumerate(_table().get(key, []), 1):
        if plain in values.split():
            return float(step)
    return _LOSES_NOTHING


def _unsynced_groups(plain: str) -> float:
    """Return how many commit groups of the binary log a power cut may take; 0 is any number."""
    if not plain.isdigit():
        return _LOSES_NOTHING
    return math.inf if int(plain) == 0 else float(int(plain) - 1)


@cache
def _table() -> dict[str, list[str]]:
    text = resources.files("mydyno.stack.known").joinpath("durability.toml").read_text("utf-8")
    return tomllib.loads(text)
