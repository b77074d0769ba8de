"""The names that servers no longer or never knew, and what to set instead."""

import tomllib
from functools import cache
from importlib import resources


def replacement(flavour: str, key: str) -> str:
    """Return what to set instead of an unknown variable, in words; empty when nothing is known.

    To be asked only for a name that the running server does not show, so no version is needed.
    """
    if key.startswith("loose_"):
        return "a loose_ prefix hides mistakes: name the variable itself, per server by `when`"
    entry = _table().get(key, {})
    return entry.get("mariadb" if flavour == "mariadb" else "mysql") or entry.get("any", "")


@cache
def _table() -> dict[str, dict[str, str]]:
    text = resources.files("mydyno.stack.known").joinpath("replaced.toml").read_text("utf-8")
    return tomllib.loads(text)
