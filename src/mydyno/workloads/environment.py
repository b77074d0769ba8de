"""The command prefix that gives a load its environment."""

from collections.abc import Mapping
from pathlib import Path


def prefix(env: Mapping[str, str], *, directory: Path | None = None) -> tuple[str, ...]:
    """Return ``env …``: the treatment's variables, then the C locale that our parsers read.

    With `directory` the command starts there.
    """
    place = ("-C", str(directory)) if directory else ()
    return ("env", *place, *(f"{name}={value}" for name, value in env.items()), "LC_ALL=C")
