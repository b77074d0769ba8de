"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from mydyno.model import SpecError

Spec = Annotated[
    str,
    typer.Argument(help="A spec file (my.toml) or the name of a recipe.", metavar="SPEC|RECIPE"),
]
Dir = Annotated[Path, typer.Argument(help="A run directory.", metavar="DIR")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]
HostOption = Annotated[
    str, typer.Option("--host", metavar="HOST", help="local, or ssh://user@host:port.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the spec: design.blocks=5."),
]
Budget = Annotated[str | None, typer.Option(help="Machine time to spend at most: 20m, 2h.")]
Scale = Annotated[
    str | None, typer.Option(metavar="NAME", help="The size to run it at, from [scale.NAME].")
]
Allow = Annotated[
    list[str] | None,
    typer.Option(
        "--allow",
        metavar="WHAT",
        help="Allow changes outside the lab: host, reformat:/dev/DISK.",
    ),
]


def overrides(given: list[str] | None, budget: str | None) -> dict[str, str]:
    """Return ``--set`` and ``--budget`` as dotted paths of the spec and their TOML values."""
    found: dict[str, str] = {}
    for item in given or []:
        key, equals, value = item.partition("=")
        if not equals or not key:
            raise SpecError(f"--set {item}: write KEY=VALUE, such as design.blocks=5")
        found[key.strip()] = value.strip()
    if budget:
        found["design.budget"] = f'"{budget}"'
    return found
