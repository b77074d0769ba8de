"""`mydyno recipes`: the campaigns that ship with mydyno."""

import sys
from typing import Annotated

import msgspec
import typer

from mydyno.campaign.spec import Spec, decode
from mydyno.cli.specs import find
from mydyno.cli.specs import recipes as shipped
from mydyno.cli.terminal import Json, print_json

Name = Annotated[
    str | None, typer.Argument(help="Print its spec, as a start for your own.", metavar="NAME")
]


def recipes(name: Name = None, *, json: Json = False) -> None:
    """List the shipped campaigns: question, time, requirements, and what they change."""
    if name:
        sys.stdout.write(find(name, {}).text)
        return
    found = {name: decode(text, f"{name}.toml") for name, text in shipped().items()}
    if json:
        print_json([_row(name, spec) for name, spec in found.items()])
    else:
        sys.stdout.write("\n".join(_lines(name, spec) for name, spec in found.items()))


def _row(name: str, spec: Spec) -> dict[str, object]:
    recipe = msgspec.to_builtins(spec.recipe)
    return {"name": name, "question": spec.campaign.question, "scales": [*spec.scale], **recipe}


def _lines(name: str, spec: Spec) -> str:
    of = spec.recipe
    times = [of.time, *([f"{of.small} with --scale small"] if of.small else [])]
    rows = {"time": ", ".join(filter(None, times)), "needs": ", ".join(of.needs)}
    rows["touches"] = of.touches
    lines = [f"  {what:<8} {text}\n" for what, text in rows.items() if text]
    return f"{name:<18} {spec.campaign.question}\n{''.join(lines)}"
