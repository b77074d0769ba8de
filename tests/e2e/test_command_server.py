"""A program as the load of a real server: the worked example of the documentation, and failures."""

import json
import re
from pathlib import Path

import pytest

from command_line import mydyno

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "workloads.md"
PROTOCOL = "[protocol]\nwarmup_s = 0.5\nwindow_s = 5\n[design]\nblocks = 1\n"


def example():
    """Return the script and the spec in the section of command loads."""
    section = DOCUMENT.read_text().partition("\n## command\n")[2]
    (script,) = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    return script, re.findall(r"```toml\n(.*?)```", section, re.DOTALL)[-1]


def outcomes(run):
    lines = (run / "journal.jsonl").read_text().splitlines()
    events = [json.loads(line)["event"] for line in lines]
    return [event["outcome"] for event in events if event["type"] == "finished"]


@pytest.mark.parametrize("transport", ["socket", "tcp"])
def test_the_worked_example_measures_the_server_under_test(folder, transport):
    script, spec = example()
    load = folder / "inserts.sh"
    load.write_text(script)
    load.chmod(0o755)
    spec = spec.replace("./inserts.sh", str(load))
    spec = spec.replace(
        "[treatments.RELAXED]", f'[treatments.RELAXED]\n"net.transport" = "{transport}"'
    )
    (folder / "spec.toml").write_text(spec + PROTOCOL)
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run")
    assert done.returncode == 0, done.stderr
    assert [one["status"] for one in outcomes(folder / "run")] == ["ok", "ok"], done.stderr


def test_the_clients_error_is_shown_and_no_traceback(folder):
    script = (
        "import os, subprocess\n"
        "argv = ['mysql', '--defaults-file=' + os.environ['MYDYNO_OPTION_FILE']]\n"
        "subprocess.run([*argv, '-e', 'SELECT * FROM nowhere'], check=True)\n"
    )
    (folder / "load.py").write_text(script)
    spec = example()[1].replace('"./inserts.sh"', f'"python3", "{folder}/load.py"')
    (folder / "spec.toml").write_text(spec + PROTOCOL)
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run")
    assert done.returncode == 0, done.stderr
    found = outcomes(folder / "run")
    assert len(found) == 2
    for one in found:
        assert "ERROR 1146 (42S02) at line 1: Table 'sbtest.nowhere' doesn't exist" in one["error"]
        assert "CalledProcessError" in one["error"]
        assert "^^^" not in one["error"]
