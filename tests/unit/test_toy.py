"""A package outside of mydyno adds one of each kind, from one file each; a campaign uses them all.

If this fails, a plug-in needs more than its file and its entry point, or CONTRIBUTING is wrong.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from toy_package import TOY, environment_with_toys, install_toys

RUN = TOY / "run_campaign.py"
MYDYNO = "from mydyno.cli import main; main()"
AS_ROOT = "import os; os.geteuid = lambda: 0; " + MYDYNO
DESIGN = "In turn: the treatments in the order of the spec"


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """Return a folder with the toys and the entry points that an installer would write."""
    folder = tmp_path_factory.mktemp("site")
    install_toys(folder)
    return folder


@pytest.fixture(scope="module")
def toys(tmp_path_factory) -> Path:
    """Return the Python of an environment that has mydyno and the toys installed."""
    return environment_with_toys(tmp_path_factory.mktemp("environment"))


def python(interpreter: object, *argv: object, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [interpreter, *map(str, argv)],
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def finished(toys, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("campaign") / "run"
    done = python(toys, RUN, TOY / "campaign.toml", folder, TOY)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_report_shows_the_toys(toys, finished):
    done = python(toys, "-c", MYDYNO, "report", finished)
    assert done.returncode == 0, done.stderr
    page = (finished / "report.html").read_text()
    for shown in ("dice.sides", "game/2", "TWENTY", "counted: trials 6", "(ToyDB)", DESIGN):
        assert shown in page


def test_the_verdict_rests_on_the_toys(toys, finished):
    done = python(toys, "-c", MYDYNO, "compare", finished)
    assert done.returncode == 0, done.stderr
    assert "TWENTY" in done.stdout
    assert "TWENTY gives 1.13 times the throughput of FOUND" in done.stdout  # 1,200 for 1,060


def test_the_status_counts_the_trials_that_the_design_declares(toys, finished):
    done = python(toys, "-c", MYDYNO, "status", finished)
    assert done.returncode == 0, done.stderr
    assert "finished; 6 of 6 trials" in done.stdout


def test_without_its_package_a_toy_is_unknown(finished):
    done = python(sys.executable, "-c", MYDYNO, "compare", finished)
    assert done.returncode == 2
    assert "'toydb >= 1.2' is not a condition" in done.stderr


def test_root_ignores_a_plugin_on_pythonpath(site, finished):
    """It would run the code of whoever can write to a folder that is named there."""
    spoiled = site / "mydyno_toy/dice.py"
    text = spoiled.read_text()
    witness = site / "imported"
    spoiled.write_text(f"open({str(witness)!r}, 'w').close()\n{text}")
    named = {"PYTHONPATH": str(site)}
    done = python(sys.executable, "-c", AS_ROOT, "compare", finished, **named)
    assert done.returncode == 2
    assert not witness.exists()
    assert done.stderr.startswith(
        f"mydyno: {site.resolve()}: root ignores the plug-ins there: alternate of mydyno-toy, "
        "counted of mydyno-toy, dice of mydyno-toy, throws of mydyno-toy, toydb of mydyno-toy; "
        f"install them with {sys.executable} -m pip\n"
    )
    assert "'toydb >= 1.2' is not a condition" in done.stderr.splitlines()[1]


def test_root_takes_the_plugins_of_its_own_environment(toys, finished):
    done = python(toys, "-c", AS_ROOT, "compare", finished, PYTHONPATH="/nonexistent")
    assert done.returncode == 0, done.stderr
    assert "TWENTY gives 1.13 times" in done.stdout
