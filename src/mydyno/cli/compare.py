"""`mydyno compare`: the verdicts of a campaign."""

import sys

import msgspec

from mydyno.cli.analysis import result
from mydyno.cli.options import Dir, Json
from mydyno.cli.terminal import width
from mydyno.report.text import render_text


def compare(directory: Dir, *, json: Json = False) -> None:
    """Say which treatment is better, by how much, and how sure that is."""
    found = result(directory)
    if json:
        sys.stdout.write(msgspec.json.encode(found.comparison).decode() + "\n")
    else:
        sys.stdout.write(render_text(found, width()))
