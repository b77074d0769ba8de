"""`mydyno inspect`: what this host is."""

import sys

import msgspec

from mydyno.cli.options import Json
from mydyno.host import Local
from mydyno.measure import facts


def inspect(*, json: Json = False) -> None:
    """Show what this host is: processor, memory, kernel, servers and tools."""
    found = facts(Local())
    if json:
        sys.stdout.write(msgspec.json.encode({"host": found.told}).decode() + "\n")
        return
    for name, value in found.told.items():
        sys.stdout.write(f"{name:<24} {value}\n")
