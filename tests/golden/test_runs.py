"""Run directories of an earlier version: `status`, `compare` and `report` mean what they meant.

`runs/NAME.tar.xz` are run directories that mydyno of 2026-11-23 wrote: finished, with a failing
treatment, interrupted, killed, killed and rolled back, and one with a real server across a lab's
link.  `runs/NAME.json` is what that version reported of each.  What it reported must still be
there, with the same values; what is added since, and the wording of sentences, may differ.
"""

import json
import os
import tarfile
from pathlib import Path

import pytest

from command_line import shown

RUNS = Path(__file__).parent / "runs"
COMMANDS = ("status", "compare", "report")
SENTENCES = {"sentence", "warnings", "unevaluated", "error", "text", "reason"}


def reported(run: Path) -> dict[str, object]:
    """Return what each command reports of a run directory, as JSON."""
    done = {command: shown(command, run, "--json") for command in COMMANDS}
    return {
        command: {"code": one.returncode, "json": json.loads(one.stdout)}
        for command, one in done.items()
    }


def differences(old: object, new: object, place: str = "") -> list[str]:
    """Return where `new` differs from `old`."""
    if isinstance(old, dict) and isinstance(new, dict):
        gone = [f"{place}.{key}: gone" for key in old if key not in new]
        both = [key for key in old if key in new and key not in SENTENCES]
        return gone + [d for key in both for d in differences(old[key], new[key], f"{place}.{key}")]
    if place.endswith(".points") and isinstance(new, list):  # of a curve: there may be more
        return [f"{place}: {point} gone" for point in old if point not in new]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [d for at, (o, n) in pairs for d in differences(o, n, f"{place}[{at}]")]
    if isinstance(old, int | float) and isinstance(new, int | float):
        same = new == pytest.approx(old, rel=1e-6, abs=1e-12)
    else:
        same = old == new
    return [] if same else [f"{place}: {old!r} -> {new!r}"]


@pytest.mark.parametrize("name", sorted(p.name.partition(".")[0] for p in RUNS.glob("*.tar.xz")))
def test_an_earlier_run_directory_keeps_its_meaning(name: str, tmp_path: Path) -> None:
    with tarfile.open(RUNS / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    found = reported(tmp_path / name)
    want = RUNS / f"{name}.json"
    if os.environ.get("MYDYNO_GOLDEN") == "first":  # never for a run that is there already
        want.write_text(json.dumps(found, separators=(",", ":")) + "\n")
    assert differences(json.loads(want.read_text()), found) == []


def test_a_changed_value_and_a_field_that_is_gone_are_seen() -> None:
    old = {"winner": "A", "value": [1.0, None], "warnings": ["x"]}
    assert differences(old, {**old, "more": 1, "warnings": ["y"]}) == []
    curve = {"points": [[1.0, 0.5], [2.0, 1.0]]}
    assert differences(curve, {"points": [[1.0, 0.5], [1.5, 0.9], [2.0, 1.0]]}) == []
    assert differences(curve, {"points": [[2.0, 1.0]]}) == [".points: [1.0, 0.5] gone"]
    assert differences(old, {"winner": "B", "value": [1.1, None]}) == [
        ".warnings: gone",
        ".winner: 'A' -> 'B'",
        ".value[0]: 1.0 -> 1.1",
    ]
