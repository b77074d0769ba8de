"""Steps of the digest's tests: run it, and write its output as golden text."""

import json
import os
import subprocess
from pathlib import Path

from mydyno.sample.sampler import probe_binary

ROOT = Path(__file__).parents[3]
FIGURES = ("count", "sum", "min", "max", "p95")


def program():
    """Return the mydyno-probe to test: from MYDYNO_PROBE, else as installed, else as built here."""
    built = ROOT / "target/release/mydyno-probe"
    return os.environ.get("MYDYNO_PROBE") or probe_binary() or str(built)


def digest(*words):
    """Return the JSON for these options and files; its decimals stay text, digit by digit."""
    argv = [program(), "digest", "--json", "--limit=0", *map(str, words)]
    done = subprocess.run(argv, capture_output=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    # an empty log among them is named
    notes = done.stderr.decode().splitlines()
    assert all(": is empty; " in note for note in notes), notes
    return json.loads(done.stdout, parse_float=str)


def golden(digested):
    """Return a digest as text with one fact a line: without histograms, zeros left out."""
    for file in digested["summary"]["files"]:
        file["name"] = Path(file["name"]).name
    lines = ["{", f' "summary": {_line(digested["summary"])},', ' "classes": [']
    lines.append(",\n".join(_class(one) for one in digested["classes"]))
    lines.append(f' ],\n "windows": {_line(digested["windows"])}\n}}\n')
    return "\n".join(lines)


def _class(statement):
    metrics = statement.pop("metrics")
    figures = {
        name: [one[figure] for figure in FIGURES]
        for name, one in sorted(metrics.items())
        if float(one["max"])
    }
    facts = [f'  "{name}": {_line(value)}' for name, value in statement.items()]
    facts += [f'  "{name}": {_line(value)}' for name, value in figures.items()]
    facts.append(f'  "zero": {_line(sorted(set(metrics) - set(figures)))}')
    return "  {\n" + ",\n".join(facts) + "\n  }"


def _line(value):
    return json.dumps(value, ensure_ascii=True)
