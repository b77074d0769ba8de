"""The JSON of every command is documented, the document is up to date, and the output fits it."""

import json
from pathlib import Path

import msgspec
import pytest

from command_line import mydyno, shown
from golden.rewrite import hold
from mydyno.cli import COMMANDS
from mydyno.cli.apply import Applied
from mydyno.cli.audit import AuditReport
from mydyno.cli.confirm import Confirmed
from mydyno.cli.export import Exported
from mydyno.cli.import_ import Imported
from mydyno.cli.inspect import Inspection
from mydyno.cli.lab import LabMade, LabRow
from mydyno.cli.move import DataMove
from mydyno.cli.plan import Plan
from mydyno.cli.recipes import RecipeRow
from mydyno.cli.rollback import Done, _print
from mydyno.cli.status import Status
from mydyno.diagnose import Diagnosis
from mydyno.keep.drift import DriftRow
from mydyno.keep.lease import Held
from mydyno.report.digestpage import Digest
from mydyno.report.machine import MachineSample
from mydyno.report.production import EffectReport
from mydyno.sample.live import Moment
from mydyno.stats.losses import Loss
from mydyno.stats.result import Comparison, Result

ROOT = Path(__file__).parents[2]
LOGS = ROOT / "tests" / "golden" / "import"
SLOW = ROOT / "tests" / "golden" / "digest" / "administrator-commands" / "input.log"
KINDS = {
    "apply": Applied,
    "audit": AuditReport,
    "compare": Comparison,
    "confirm": Confirmed,
    "diagnose": list[Diagnosis],
    "digest": Digest,
    "effect": EffectReport,
    "export": Exported,
    "import": Imported,
    "inspect": Inspection,
    "inspect --live": Moment,
    "inspect FILE": MachineSample,
    "lab crash-test": list[Loss],
    "lab down": list[str],
    "lab list": list[LabRow],
    "lab up": LabMade,
    "move": DataMove,
    "plan": Plan,
    "recipes": list[RecipeRow],
    "report": Result,
    "report FILE": MachineSample,
    "rollback": list[str],
    "run": Comparison,
    "status": Status,
    "status HOST": list[Held],
    "verify": list[DriftRow],
    "why": list[Diagnosis],
}
PARTIAL = {"digest"}  # docs/reference/digest.md has the fields that the page does not read
SPEC = """
[campaign]
question = "does it fit?"
[stack]
server = "none"
[treatments.A]
[treatments.B]
"load/env.X" = "1"
[workloads.w]
tool = "command"
argv = ["/bin/sh", "-c", 'while sleep 0.01; do echo "{\\"t_s\\":$((i+=1)),\\"tps\\":9}"; done']
[protocol]
warmup_s = 1
window_s = 3
[design]
blocks = 2
"""


def test_the_schema_is_that_of_the_values():
    named, parts = msgspec.json.schema_components(KINDS.values())
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$comment": "`commands` has the output of each command with --json",
        "anyOf": [one for i, one in enumerate(named) if one not in named[:i]],
        "commands": dict(zip(KINDS, named, strict=True)),
        "$defs": parts,
    }
    text = json.dumps(schema, indent=1, sort_keys=True).replace("#/components/schemas", "#/$defs")
    hold(ROOT / "docs" / "reference" / "schema.json", text + "\n")


def test_every_command_has_one():
    assert {kind.split()[0] for kind in KINDS} == {*COMMANDS}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("schema") / "run"
    path.with_suffix(".toml").write_text(SPEC)
    assert shown("run", path.with_suffix(".toml"), "-o", path).returncode == 0
    return path


def fits(command, text):
    """Assert that an output is of its command's kind, number for number, with no field beside."""
    kind, found = KINDS[command], json.loads(text)
    value = json.loads(msgspec.json.encode(msgspec.json.decode(text, type=kind, strict=True)))
    assert value == found or command in PARTIAL


@pytest.mark.parametrize(
    ("command", "arguments"),
    [
        ("plan", ["{run}.toml"]),
        ("run", ["{run}.toml", "-o", "{run}"]),
        ("status", ["{run}"]),
        ("compare", ["{run}"]),
        ("report", ["{run}"]),
        ("import", [str(LOGS), "-o", "{run}-imported"]),
        ("inspect", []),
        ("inspect", ["--live", "--count", "1"]),
        ("lab", ["list"]),
        ("recipes", []),
        ("digest", [str(SLOW), "--window", "60s"]),
    ],
)
def test_what_a_command_prints_fits_the_schema(run, command, arguments):
    named = (
        f"{command} {arguments[0]}" if arguments and arguments[0] in {"--live", "list"} else command
    )
    done = printed(command, *(word.format(run=run) for word in arguments), "--json")
    assert done.returncode in {0, 1}, done.stderr
    fits(named, done.stdout)


def printed(command, *arguments):
    """Run a command; `digest` becomes another program, so it runs in a process of its own."""
    return (mydyno if command == "digest" else shown)(command, *arguments)


def test_the_lines_of_rollback_fit(capsys):
    _print(Done(["restored: db/kernel.sysctl.vm.swappiness = 60"]), json=True)
    fits("rollback", capsys.readouterr().out)
