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
    if getattr(spec.stack.device, "machine", False):
        pytest.skip(f"boots a virtual machine, so by hand: mydyno run {name} --scale small")
    if spec.stack.server == "none" and server != "mariadb":
        pytest.skip("has no server: runs once, as mariadb")
    if spec.stack.servers and server != "mariadb":
        pytest.skip("has both servers: runs once, as mariadb")
    command = ("lab", "crash-test") if spec.design.kind == "crash" else ("run",)
    run = RUNS / f"{name}-{server}"
    RUNS.mkdir(mode=0o755, exist_ok=True)
    scale = ("--scale", "small") if "small" in spec.scale else ()
    chosen = () if spec.stack.server == "none" else ("--set", f"stack.server={SERVERS[server]}")
    for other in spec.stack.servers:
        chosen += ("--set", f"stack.servers.{other}={SERVERS['mysql']}")
    done = mydyno(*command, name, *scale, *chosen, "-o", run, "--json", timeout=LONG_S)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    if spec.design.kind == "crash":
        ends = [(row["treatment"], row["failed"], row["cuts"]) for row in found]
    else:
        ends = [(r["name"], r["ends"]["failed"], r["trials"]) for r in found["treatments"]]
    wrong = [name for name, failed, good in ends if failed or not good]
    assert not wrong, found
    assert (run / "report.html").stat().st_size > 0
    assert not (run / "work").exists()
