"""A package outside of mydyno adds one of each kind, from one file each; a campaign uses them all.

If this fails, a plug-in needs more than its file and its entry point, or CONTRIBUTING is wrong.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

TOY = Path(__file__).parents[1] / "toy"
RUN = TOY / "run_campaign.py"
MYDYNO = "from mydyno.cli import main; main()"


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """Return a folder with the toys and the entry points that an installer would write."""
    folder = tmp_path_factory.mktemp("site")
    project = tomllib.loads((TOY / "pyproject.toml").read_text())["project"]
    shutil.copytree(TOY / "mydyno_toy", folder / "mydyno_toy")
    info = folder / "mydyno_toy-1.0.dist-info"
    info.mkdir()
    named = f"Name: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\n{named}")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {what}" for name, what in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    return folder


def python(*argv: object, site: Path | None) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, (str(site or ""), os.environ.get("PYTHONPATH", ""))))
    return subprocess.run(
        [sys.executable, *map(str, argv)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def finished(installed, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("campaign") / "run"
    done = python(RUN, TOY / "campaign.toml", folder, site=installed)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_report_shows_the_toys(installed, finished):
    done = python("-c", MYDYNO, "report", finished, site=installed)
    assert done.returncode == 0, done.stderr
    page = (finished / "report.html").read_text()
    for shown in ("dice.sides", "game/2", "TWENTY", "counted: trials 6"):
        assert shown in page


def test_the_verdict_rests_on_the_toys(installed, finished):
    done = python("-c", MYDYNO, "compare", finished, site=installed)
    assert done.returncode == 0, done.stderr
    assert "TWENTY" in done.stdout
    assert "TWENTY gives 1.13 times the throughput of FOUND" in done.stdout  # 1,200 for 1,060


def test_the_status_counts_the_trials_that_the_design_declares(installed, finished):
    done = python("-c", MYDYNO, "status", finished, site=installed)
    assert done.returncode == 0, done.stderr
    assert "finished; 6 of 6 trials" in done.stdout


def test_without_its_package_a_toy_is_unknown(finished):
    done = python("-c", MYDYNO, "compare", finished, site=None)
    assert done.returncode == 2
    assert "unknown" in done.stderr
