"""`mydyno recipes`: the campaigns that ship with mydyno."""

import sys
from typing import Annotated

import msgspec
import typer

from mydyno.campaign.spec import Spec, decode
from mydyno.cli.options import Json
from mydyno.cli.specs import find
from mydyno.cli.specs import recipes as shipped

Name = Annotated[
    str | None, typer.Argument(help="Print this one, to begin a spec of your own.", metavar="NAME")
]


def recipes(name: Name = None, *, json: Json = False) -> None:
    """List the campaigns that ship with mydyno: what they ask, take, need and touch."""
    if name:
        sys.stdout.write(find(name, {}).text)
        return
    found = {name: decode(text, f"{name}.toml") for name, text in shipped().items()}
    if json:
        rows = [_row(name, spec) for name, spec in found.items()]
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
        return
    sys.stdout.write("\n".join(_lines(name, spec) for name, spec in found.items()))


def _row(name: str, spec: Spec) -> dict[str, object]:
    recipe = msgspec.to_builtins(spec.recipe)
    return {"name": name, "question": spec.campaign.question, "scales": [*spec.scale], **recipe}


def _lines(name: str, spec: Spec) -> str:
    of = spec.recipe
    times = [of.time, *([f"{of.small} with --scale small"] if of.small else [])]
    told = {"time": ", ".join(filter(None, times)), "needs": ", ".join(of.needs)}
    told["touches"] = of.touches
    lines = [f"  {what:<8} {text}\n" for what, text in told.items() if text]
    return f"{name:<18} {spec.campaign.question}\n{''.join(lines)}"
