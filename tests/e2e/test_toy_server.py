"""A campaign of all five toys on a real host and a real server of the toy's flavour.

If it fails, a plug-in works on fakes only.
"""

import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from command_line import MAIN
from toy_package import TOY, environment_with_toys

pytestmark = [pytest.mark.root, pytest.mark.mysqld]

# what MariaDB's installer needs of a basedir besides the server
INSTALLER = ("mariadb-install-db", "my_print_defaults", "resolveip")
FOUND = '{"sides": "6"}\n'


@pytest.fixture
def base():
    """Return a basedir of ToyDB, which MariaDB's programs serve, below a folder of root's."""
    with tempfile.TemporaryDirectory(prefix="mydyno-test-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        base = folder / "toydb"
        shutil.copytree(TOY / "bin", base / "bin")
        for program in INSTALLER:
            (base / "bin" / program).symlink_to(shutil.which(program))
        real = Path(shutil.which("mariadbd")).resolve().parents[1]
        (base / "sbin").symlink_to(real / "sbin")
        (base / "share").symlink_to(real / "share")
        (base / "sides").write_text(FOUND)
        yield base


def test_a_campaign_uses_all_five_toys(base):
    python, run = environment_with_toys(base.parent / "environment"), base.parent / "run"

    def mydyno(*words):
        path = f"{base / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            [python, "-c", MAIN, *map(str, words)],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    asked = (TOY / "campaign.toml", "--set", f"stack.server={base}")
    asked += ("--set", "design.blocks=2", "--set", "workloads.game.server=true")
    done = mydyno("plan", *asked)
    assert "Ver 1.2.0 for Linux on x86_64 (ToyDB)" in done.stdout, done.stderr
    done = mydyno("run", *asked, "--allow", "host", "-o", run)
    assert done.returncode == 0, done.stderr
    assert (base / "sides").read_text() == FOUND, "the host is as it was found"
    facts = json.loads((run / "facts/server.json").read_text())
    assert facts["program"] == f"{base}/bin/toydbd"
    assert "MariaDB" in facts["version"]
    assert mydyno("report", run).returncode == 0
    page = (run / "report.html").read_text()
    assert "In turn: the treatments in the order of the spec" in page
    for shown in ("dice.sides", "game/2", "counted: trials 4", "(ToyDB)"):
        assert shown in page
