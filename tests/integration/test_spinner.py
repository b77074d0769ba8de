"""Slices of CPUs: taken as ordered, left again, and refused without the right to real-time."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from mydyno.cli.diagnose import other_databases
from mydyno.host import Local, ask
from mydyno.lab import Spinner
from mydyno.stack.doses import Slow

pytestmark = [pytest.mark.root, pytest.mark.slow, pytest.mark.alone]
_PLAIN = """
import sys
from pathlib import Path
from mydyno.host import Local
from mydyno.model import HostError
from mydyno.lab import Spinner
try:
    Spinner(Local(), Path(sys.argv[1])).start()
except HostError as error:
    print(error)
"""


@pytest.fixture
def spinner(tmp_path):
    made = Spinner(Local(), tmp_path / "spin")
    made.start()
    yield made
    made.stop()


def ordered(spinner, share):
    layer, host = Slow(spinner.folder), Local()
    for change in layer.plan(ask(host, layer.observe()), {"host": share} if share else {}):
        host.run(change.action).check()
    return ask(host, layer.observe())


def used(pid):
    """Return the CPU seconds of all threads of a process."""
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def cores_taken(pid, seconds=2.0):
    before, began = used(pid), time.monotonic()
    time.sleep(seconds)
    return (used(pid) - before) / (time.monotonic() - began)


def are_taken(pid, cores):
    """Return whether so many cores are: never more, and no less where no neighbour has them."""
    looks = [cores_taken(pid) for _ in range(3)]
    return max(looks) <= 1.15 * cores and max(looks) >= 0.85 * cores


@pytest.mark.parametrize(("left", "taken"), [("80%", 0.2), ("70%", 0.3)])
def test_a_share_of_each_cpu_is_taken_and_left_again(spinner, left, taken):
    cpus = len(spinner.cpus["host"])
    assert cores_taken(spinner.pid, 0.5) < 0.05
    assert ordered(spinner, left) == {"host": left}
    assert are_taken(spinner.pid, taken * cpus)
    assert ordered(spinner, "") == {"host": "100%"}
    assert cores_taken(spinner.pid, 0.5) < 0.05


def test_server_and_load_lose_a_fifth_of_their_own_cpus_alone(tmp_path):
    one = Spinner(Local(), tmp_path / "spin", roles={"server": {0}, "load": {1}})
    one.start()
    try:
        layer, host = Slow(one.folder), Local()
        assert ask(host, layer.observe()) == {"server": "100%", "load": "100%"}
        for change in layer.plan(ask(host, layer.observe()), {"load": "80%"}):
            host.run(change.action).check()
        assert ask(host, layer.observe()) == {"server": "100%", "load": "80%"}
        assert are_taken(one.pid, 0.2)
    finally:
        one.stop()


def test_it_ends_when_it_is_stopped(spinner):
    pid = spinner.pid
    spinner.stop()
    assert not _alive(pid)


def _alive(pid):
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
        return stat.rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def test_without_the_right_to_real_time_the_next_step_is_named(tmp_path):
    argv = ("setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice")
    done = subprocess.run(
        [*argv, sys.executable, "-c", _PLAIN, str(tmp_path / "spin")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "CAP_SYS_NICE" in done.stdout
    assert "--only" in done.stdout


def test_what_mydyno_started_is_no_other_database(tmp_path):
    program = tmp_path / "mongod"
    program.write_bytes(Path("/bin/sleep").read_bytes())
    program.chmod(0o755)
    with subprocess.Popen([program, "30"]) as running:
        try:
            assert f"mongod (pid {running.pid})" in other_databases(Local())
        finally:
            running.kill()


def test_a_database_that_is_ending_is_none(tmp_path):
    """A server of ours that was killed with its owner must not refuse the run that goes on."""
    other = tmp_path / "mariadbd"
    other.write_bytes(Path("/bin/sleep").read_bytes())
    other.chmod(0o755)
    with subprocess.Popen([other, "60"]) as running:
        assert f"mariadbd (pid {running.pid})" in other_databases(Local())
        running.kill()
        until = time.monotonic() + 10
        while Path(f"/proc/{running.pid}/cmdline").read_bytes() and time.monotonic() < until:
            time.sleep(0.05)
        assert f"mariadbd (pid {running.pid})" not in other_databases(Local())  # not yet reaped
