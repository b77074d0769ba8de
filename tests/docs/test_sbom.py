"""The bill of materials names every locked package with its hash, and setup demands the hashes."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_locked_package_is_named_with_a_hash():
    argv = [sys.executable, ROOT / "packaging" / "sbom.py"]
    found = json.loads(subprocess.run(argv, capture_output=True, check=True).stdout)
    named = {part["purl"] for part in found["components"]}
    pinned = re.findall(
        r"^([\w.-]+)==([^\s;]+)", (ROOT / "requirements.lock").read_text(), re.MULTILINE
    )
    crates = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    want = {f"pkg:pypi/{name.lower()}@{version}" for name, version in pinned}
    want |= {f"pkg:cargo/{c['name']}@{c['version']}" for c in crates if "source" in c}
    assert named == want
    assert all("hashes" in json.dumps(part) for part in found["components"])


def test_the_distributions_of_extras_are_pinned_to_this_version_and_its_locks():
    """If it fails, an extra installs another mydyno, or what no lock has a hash of."""
    own = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    required = {pin for extra in own["optional-dependencies"].values() for pin in extra}
    pinned = {*own["dependencies"], f"mydyno=={own['version']}"}
    for folder in (ROOT / "packages").iterdir():
        project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
        assert f"{project['name']}=={own['version']}" in required
        assert project["version"] == own["version"]
        assert set(project["dependencies"]) <= pinned
        assert (folder / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_nothing_is_installed_without_its_hash():
    for line in (ROOT / "packaging" / "setup.sh").read_text().splitlines():
        if "pip install" in line and not line.lstrip().startswith("#"):
            assert "--require-hashes" in line or "--no-deps -e ." in line, line
        if "cargo build" in line:
            assert "--locked" in line, line
