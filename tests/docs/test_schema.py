"""The JSON that commands print is documented, and the document is up to date."""

import json
from pathlib import Path

import msgspec

from golden.rewrite import hold
from mydyno.cli.import_ import Imported
from mydyno.cli.plan import Plan
from mydyno.cli.status import Status
from mydyno.stats.result import Comparison, Result

ROOT = Path(__file__).parents[2]


def test_the_schema_is_that_of_the_values():
    kinds = [Comparison, Result, Status, Plan, Imported]
    named, parts = msgspec.json.schema_components(kinds)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "anyOf": list(named),
        "$defs": parts,
    }
    text = json.dumps(schema, indent=1, sort_keys=True).replace("#/components/schemas", "#/$defs")
    hold(ROOT / "docs" / "reference" / "schema.json", text + "\n")
