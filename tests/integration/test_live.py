"""`mydyno inspect --live` on this host and on a real server: lines, objects, an end in order."""

import json
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from command_line import COMMAND
from integration.server_steps import MARIADB
from mydyno.sample import probe_binary

ARGV = [*COMMAND, "inspect", "--live"]


@pytest.fixture(autouse=True)
def program():
    if not probe_binary():
        pytest.fail("mydyno-probe is missing: run packaging/setup.sh")


def live(*arguments):
    argv = [*ARGV, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=300)


def left_over():
    """Return the samplers and folders that a live view has left."""
    found = list(Path(tempfile.gettempdir()).glob("mydyno-live-*"))
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found += [path] if b"/mydyno-live-" in path.read_bytes() else []
        except OSError:
            continue
    return found


@pytest.mark.timed
def test_an_object_each_second():
    done = live("--json", "--count", 3)
    assert done.returncode == 0, done.stderr
    seen = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["seq"] for one in seen] == [1, 2, 3]
    assert seen[2]["wall_s"] - seen[0]["wall_s"] == pytest.approx(2, abs=0.5)
    assert abs(seen[2]["wall_s"] - time.time()) < 10
    for one in seen:
        modes = ("user", "system", "irq", "iowait", "steal", "idle")
        assert sum(one["values"][f"cpu.{mode}"] for mode in modes) > 0
        assert 0 < one["values"]["memory.available"] < one["values"]["memory.total"]
        assert "queries" not in one["values"]
    assert left_over() == []


def test_a_line_each_second_where_nobody_watches():
    done = live("--count", 2)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 2
    assert all("processors: user " in line and "memory: total " in line for line in lines)


def test_it_is_interrupted_in_order():
    process = subprocess.Popen([*ARGV, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline().startswith(b'{"wall_s":')
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=300)
    assert (process.returncode, errors) == (0, b"")
    assert left_over() == []


@pytest.mark.mysqld
def test_a_server_is_shown_beside_its_host(running):
    made = running.take(MARIADB)
    done = live("--json", "--count", 12, "--server-defaults", made.place.admin)
    assert done.returncode == 0, done.stderr
    last = json.loads(done.stdout.splitlines()[-1])["values"]
    assert last["queries"] > 0
    assert last["threads_running"] >= 1
    assert {"innodb.checkpoint_age", "innodb.dirty_share", "innodb.redo_rate"} <= last.keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--server-defaults", "/nowhere"], "/nowhere: no such file"),
        (["--server-defaults", "/etc/passwd"], "no user in [client]"),
    ],
)
def test_invalid_arguments_are_reported(arguments, message):
    done = live("--count", 2, *arguments)
    assert done.returncode in {2, 3}
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert left_over() == []


def test_a_server_that_does_not_answer_ends_it(tmp_path):
    defaults = tmp_path / "client.cnf"
    defaults.write_text(f"[client]\nuser = nobody\nsocket = {tmp_path}/none.sock\n")
    defaults.chmod(0o600)
    done = live("--count", 5, "--server-defaults", defaults)
    assert done.returncode == 3
    assert f"check socket, user and password in {defaults}" in done.stderr
    assert left_over() == []


def test_what_belongs_to_it_is_refused_without_it():
    argv = [*ARGV[:-1], "--count", "3"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "need --live" in done.stderr
