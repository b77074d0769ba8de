"""Every recipe at its small scale, on MariaDB and on MySQL: hours; it goes on where it ended."""

import json
import os
from importlib.resources import files
from pathlib import Path

import pytest

from command_line import mydyno
from mydyno.campaign.spec import decode

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]
CACHE = Path(os.environ.get("MYDYNO_CACHE", "/var/cache/mydyno")) / "servers"
SERVERS = {"mariadb": "auto", "mysql": str(CACHE / "mysql-8.0.33")}
RUNS = Path("/var/tmp/mydyno-recipes")  # noqa: S108 - kept, so that the next shard goes on
LONG_S = 3600
APART = {
    "durability": "its loads are cut: `mydyno lab crash-test` (tests/e2e/test_crash.py)",
    "sort-buffer-generations": "names its servers itself",
}


def recipes():
    """Yield each recipe that runs here with each server that it can run on."""
    for path in sorted(files("mydyno.recipes").iterdir(), key=lambda one: one.name):
        name, _, kind = path.name.rpartition(".")
        if kind == "toml":
            spec = decode(path.read_text(), path.name)
            for server in SERVERS:
                yield pytest.param(name, server, spec, id=f"{name}-{server}")


@pytest.mark.parametrize(("name", "server", "spec"), list(recipes()))
def test_a_recipe_at_small_scale(name, server, spec):
    if name in APART:
        pytest.skip(APART[name])
    if getattr(spec.stack.device, "machine", False):
        pytest.skip("needs the VM lab: make test-vm")
    if spec.stack.server == "none" and server != "mariadb":
        pytest.skip("has no server")
    run = RUNS / f"{name}-{server}"
    RUNS.mkdir(mode=0o755, exist_ok=True)
    scale = ("--scale", "small") if "small" in spec.scale else ()
    chosen = () if spec.stack.server == "none" else ("--set", f"stack.server={SERVERS[server]}")
    done = mydyno("run", name, *scale, *chosen, "-o", run, "--json", timeout=LONG_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    lost = {row["name"]: row["ends"] for row in found["treatments"] if row["ends"]["failed"]}
    assert not lost, found["warnings"]
    assert all(row["trials"] for row in found["treatments"]), found["treatments"]
    assert (run / "report.html").stat().st_size > 0
    assert not (run / "work").exists()
