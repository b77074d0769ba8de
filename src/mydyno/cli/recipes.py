"""`mydyno recipes`: the campaigns that ship with mydyno."""

import sys

import msgspec

from mydyno.campaign.spec import decode
from mydyno.cli.options import Json
from mydyno.cli.specs import recipes as shipped


def recipes(*, json: Json = False) -> None:
    """List the campaigns that ship with mydyno."""
    found = {name: decode(text, f"{name}.toml").campaign for name, text in shipped().items()}
    if json:
        rows = [{"name": n, "question": c.question} for n, c in found.items()]
        sys.stdout.write(msgspec.json.encode(rows).decode() + "\n")
        return
    for name, campaign in found.items():
        sys.stdout.write(f"{name:<18} {campaign.question}\n")
