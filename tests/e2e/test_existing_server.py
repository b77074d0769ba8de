"""A campaign on a server that is not ours: variables set while it runs, then restored."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration.server_steps import HOST, SERVERS, build_of, open_folder
from mydyno.loads.sysbench import client_section
from mydyno.server import prepare

pytestmark = [pytest.mark.mysqld, pytest.mark.root]
OTHERS = (
    "SELECT COUNT(*) FROM information_schema.processlist "
    "WHERE user = SUBSTRING_INDEX(USER(), '@', 1) AND id <> CONNECTION_ID()"
)
# What is refused before the server matters is tried with one.
ON_ONE = pytest.mark.parametrize("theirs", SERVERS[:1], indirect=True)
CHANGED = "out/trials/*/changes.json"  # written when the variables are set
MYDYNO = Path(sys.executable).with_name("mydyno")
SPEC = """
[campaign]
name = "live"
[stack]
server = "existing:{options}"
[treatments.STOCK]
[treatments.MORE]
"mysqld.{key}" = {value}
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
tables = 1
table_size = 500
threads = [2]
rate = 100
[protocol]
kind = "fixed"
warmup_s = 1
window_s = {window}
reset = "{reset}"
[design]
blocks = {blocks}
"""


@pytest.fixture(scope="module", params=SERVERS)
def theirs(request):
    """Yield a running server with its administrator's option file."""
    folder = open_folder()
    server = prepare(HOST, build_of(request.param), places=(folder / "home", folder / "data"))
    try:
        server.initialise()
        server.place.owned.write_text("[mysqld]\nserver_id = 1\n")  # 5.6 has none, and no replica
        server.start()
        yield server
    finally:
        server.close()
        shutil.rmtree(folder)


def spec(folder, server, **changes):
    """Write a spec for the server; return its path."""
    given = {"key": "sort_buffer_size", "value": 65536, "window": 2, "reset": "none", "blocks": 1}
    path = folder / "live.toml"
    path.write_text(SPEC.format(**{"options": server.place.admin, **given, **changes}))
    return path


def run(folder, *words, code=0):
    done = subprocess.run(
        [MYDYNO, *words], cwd=folder, capture_output=True, text=True, check=False, timeout=500
    )
    assert done.returncode == code, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def state(server):
    """Return the variable that is changed, and the databases."""
    names = "@@GLOBAL.sort_buffer_size"
    return server.query(f"SELECT {names}"), server.query("SHOW DATABASES")


def test_treatments_are_compared_and_nothing_stays(theirs, tmp_path):
    before = state(theirs)
    path = spec(tmp_path, theirs)
    assert "MORE" in run(tmp_path, "plan", str(path))
    assert state(theirs) == before
    assert "MORE" in run(tmp_path, "run", str(path), "-o", "out", "--allow", "existing-server")
    assert state(theirs) == before
    again = run(tmp_path, "run", str(path), "-o", "out", "--allow", "existing-server")
    assert "preparing" not in again, "it is complete: nothing is made on their server"
    assert "MORE" in again
    assert "nothing to restore" in run(tmp_path, "rollback", "out")


@ON_ONE
def test_it_takes_consent(theirs, tmp_path):
    words = run(tmp_path, "run", str(spec(tmp_path, theirs)), "-o", "out", code=4)
    assert "add --allow existing-server" in words


def wait_until(seen, process=None, timeout_s=300):
    end = time.monotonic() + timeout_s
    while not seen():
        assert time.monotonic() < end
        assert process is None or process.poll() is None
        time.sleep(0.1)


def test_somebody_else_who_is_connected_is_not_disturbed(theirs, tmp_path):
    other = subprocess.Popen(theirs.client, stdin=subprocess.PIPE)  # it waits for statements
    try:
        wait_until(lambda: theirs.query(OTHERS) != [("0",)])
        path = spec(tmp_path, theirs)
        words = run(tmp_path, "run", str(path), "-o", "out", "--allow", "existing-server", code=4)
        assert "other sessions are connected" in words
    finally:
        other.communicate()
        wait_until(lambda: theirs.query(OTHERS) == [("0",)])


def test_an_account_that_does_not_see_others_is_refused(theirs, tmp_path):
    """The server shows it its own sessions only, so that nobody else seemed to be connected."""
    theirs.query(
        "CREATE USER blind@localhost IDENTIFIED BY 'Blind-1'; "
        "GRANT ALL ON mydyno_bench.* TO blind@localhost"
    )
    options = tmp_path / "blind.cnf"
    options.write_text(f"[client]\nuser=blind\npassword=Blind-1\nsocket={theirs.place.socket}\n")
    options.chmod(0o600)
    path = spec(tmp_path, theirs, options=options)
    words = run(tmp_path, "run", str(path), "-o", "out", "--allow", "existing-server", code=4)
    assert "GRANT PROCESS ON *.* TO it" in words
    theirs.query("DROP USER blind@localhost")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"key": "innodb_page_size", "value": 4096}, "needs a restart"),
        ({"key": "no_such"}, "no_such"),
    ],
)
def test_a_variable_that_it_does_not_take_while_it_runs_is_refused(
    theirs, tmp_path, changes, words
):
    refused(theirs, tmp_path, changes, words)


@ON_ONE
def test_a_reset_is_refused(theirs, tmp_path):
    refused(theirs, tmp_path, {"reset": "dataset"}, "nothing is reset there")


def refused(theirs, tmp_path, changes, words):
    path = spec(tmp_path, theirs, **changes)
    shown = run(tmp_path, "run", str(path), "-o", "out", "--allow", "existing-server", code=2)
    assert words in shown
    assert "live.toml" in shown


def test_a_killed_run_is_rolled_back(theirs, tmp_path):
    before = state(theirs)
    path = spec(tmp_path, theirs, window=30)
    argv = [MYDYNO, "run", str(path), "-o", "out", "--allow", "existing-server"]
    process = subprocess.Popen(argv, cwd=tmp_path)
    wait_until(
        lambda: any("sort_buffer_size" in one.read_text() for one in tmp_path.glob(CHANGED)),
        process,
    )
    assert state(theirs)[0] != before[0]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    shown = run(tmp_path, "rollback", "out")
    assert "restored: " in shown
    assert "database mydyno_bench" in shown
    assert state(theirs) == before


def test_the_password_is_nowhere_in_the_run_directory(theirs, tmp_path):
    """A run directory can be copied and mailed; what the load logs in with ends with the run."""
    secret = client_section(Path(theirs.place.admin).read_text())["password"].encode()
    run(tmp_path, "run", str(spec(tmp_path, theirs)), "-o", "out", "--allow", "existing-server")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if secret in path.read_bytes()] == []
    assert not list((tmp_path / "out").rglob("sysbench.cfg"))


def test_a_bound_that_the_server_moves_along_has_its_first_value_again(theirs, tmp_path):
    names = "SELECT @@GLOBAL.innodb_io_capacity, @@GLOBAL.innodb_io_capacity_max"
    before = theirs.query(names)
    path = spec(tmp_path, theirs, key="innodb_io_capacity", value=2 * int(before[0][1]))
    run(tmp_path, "run", str(path), "-o", "out", "--allow", "existing-server")
    assert theirs.query(names) == before


def test_a_plan_sets_nothing(theirs, tmp_path):
    theirs.query("SET GLOBAL log_output = 'TABLE'; SET GLOBAL general_log = 1")
    try:
        assert "MORE" in run(tmp_path, "plan", str(spec(tmp_path, theirs)))
    finally:
        theirs.query("SET GLOBAL general_log = 0; SET GLOBAL log_output = 'FILE'")
    asked = [row[0] for row in theirs.query("SELECT argument FROM mysql.general_log")]
    assert any("SHOW GLOBAL VARIABLES" in text for text in asked)
    assert [text for text in asked if text.upper().startswith("SET GLOBAL SORT")] == []


def test_a_replica_is_refused(theirs, tmp_path):
    """It would have rows that its source has not; whether it runs does not matter."""
    theirs.query("CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_USER = 'none'")
    try:
        path = spec(tmp_path, theirs)
        words = run(tmp_path, "run", str(path), "-o", "out", "--allow", "existing-server", code=4)
        assert "the server is a replica" in words
    finally:
        theirs.query("RESET SLAVE ALL")
