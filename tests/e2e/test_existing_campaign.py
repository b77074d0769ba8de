"""A campaign that begins with the data directory of a server that is there already."""

import shutil

import pytest

from command_line import mydyno
from integration.server_steps import HOST, MARIADB, build_of, open_folder
from mydyno.host import ask
from mydyno.server import prepare
from mydyno.snapshot import store

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = """
[campaign]
name = "moved"
[stack]
server = "auto"
device = {{ lab = "loop", size = "512M", class = "azure-p30" }}
data = "{data}"
[factors]
"fs.type" = ["ext4", "xfs"]
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_only"
tables = 1
table_size = 3000
threads = 2
rate = 100
[protocol]
warmup_s = 1
window_s = 2
blocks = 2
"""


@pytest.fixture
def shop():
    folder = open_folder()
    other = prepare(HOST, build_of(MARIADB), places=(folder / "other", folder / "lib"))
    try:
        other.initialise()
        other.start()
        other.query("CREATE DATABASE shop; CREATE TABLE shop.item (id INT PRIMARY KEY)")
        yield other
    finally:
        other.close()
        shutil.rmtree(folder)


def test_the_data_of_a_stopped_server_move_to_each_filesystem_and_stay_where_they_are(
    shop, tmp_path
):
    spec, run = tmp_path / "moved.toml", tmp_path / "run"
    spec.write_text(SPEC.format(data=shop.place.data))
    for command in (("plan", spec), ("run", spec, "-o", run)):
        refused = mydyno(*command, cwd=tmp_path)
        assert refused.returncode == 4, refused.stderr
        assert "stop that server, or name a copy of its data" in refused.stderr
    shop.stop()
    planned = mydyno("plan", spec, cwd=tmp_path)
    assert f"a copy of {shop.place.data}, which is only read" in planned.stdout
    before = ask(HOST, store.listing(shop.place.data))
    done = mydyno("run", spec, "-o", run, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    output = done.stdout + done.stderr
    assert f"beside {shop.place.data} on ext4" in output
    assert f"beside {shop.place.data} on xfs" in output
    assert ask(HOST, store.listing(shop.place.data)) == before


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("var/lib/mysql", "not an absolute path"),
        ("/var/lib/nothing", "not a data directory on"),
    ],
)
def test_a_wrong_folder_is_reported_before_anything_is_made(data, words, tmp_path):
    spec = tmp_path / "moved.toml"
    spec.write_text(SPEC.format(data=data))
    refused = mydyno("run", spec, "-o", tmp_path / "run", cwd=tmp_path)
    assert refused.returncode != 0
    assert words in refused.stderr
    assert not (tmp_path / "run" / "work").exists()
