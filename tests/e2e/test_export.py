"""A verdict of a real campaign becomes files of other tools, and a server that starts with them."""

import json
import os
import shutil

import pytest

from command_line import mydyno, shown
from integration.server_steps import open_folder
from mydyno.host import Local
from mydyno.server import find, prepare

pytestmark = [pytest.mark.root, pytest.mark.mysqld, pytest.mark.slow]

SPEC = """
[campaign]
name = "small"
[stack]
server = "auto"
device = { lab = "loop", size = "1G" }
[treatments.STOCK]
[treatments.LARGE]
"mysqld.sort_buffer_size" = "512K"
"block.scheduler" = "mq-deadline"
"limits.nofile" = 12345
[treatments.LOSSY]
"mysqld.innodb_flush_log_at_trx_commit" = "2"
[workloads.ro]
tool = "sysbench-oltp"
script = "oltp_read_only"
tables = 1
table_size = 1000
threads = [2]
rate = 100
[protocol]
warmup_s = 1
window_s = 3
[design]
blocks = 1
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("export")
    (folder / "spec.toml").write_text(SPEC)
    done = mydyno("run", folder / "spec.toml", "-o", folder / "run", timeout=1800)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def test_the_files_lie_as_on_the_host_and_name_their_evidence(run, tmp_path):
    out = tmp_path / "kept"
    done = mydyno("export", run, "LARGE", "-o", out, "--target", "disk=sdc", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["left_out"] == []
    assert set(found["files"]) == {
        "apply/etc/mysql/mariadb.conf.d/zz-mydyno.cnf",
        "apply/etc/systemd/system/mariadb.service.d/zz-mydyno.conf",
        "apply/etc/udev/rules.d/99-mydyno.rules",
        "revert/etc/mysql/mariadb.conf.d/zz-mydyno.cnf",
        "revert/etc/systemd/system/mariadb.service.d/zz-mydyno.conf",
        "revert/etc/udev/rules.d/99-mydyno.rules",
        "README.txt",
        "kept.json",
    }
    option = (out / "apply/etc/mysql/mariadb.conf.d/zz-mydyno.cnf").read_text()
    assert "LARGE of the campaign small" in option
    assert "of STOCK; verdict " in option
    assert "sort_buffer_size = 512K" in option


def test_a_server_starts_with_what_was_written(run, tmp_path):
    out = tmp_path / "kept"
    assert shown("export", run, "LARGE", "-f", "mycnf", "-o", out).returncode == 0
    (file,) = out.glob("apply/**/*.cnf")
    folder = open_folder()
    instance = prepare(Local(), find(Local(), "auto"), places=(folder / "home", folder / "data"))
    instance.place.owned.write_text("[mysqld]\n")
    try:
        instance.initialise()
        instance.place.owned.write_text(file.read_text())
        instance.start()
        assert instance.query("SELECT @@global.sort_buffer_size") == [("524288",)]
    finally:
        instance.close()
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("LOSSY",), 4, "--allow weaker-durability"),
        (("LARGE",), 2, "add --target disk=sdc"),
        (("LARG",), 2, "did you mean 'LARGE'"),
        (("STOCK",), 2, "is the baseline"),
        (("LARGE", "-f", "mycnff"), 2, "did you mean 'mycnf'"),
        (("LARGE", "--target", "dsk=sdc"), 2, "did you mean 'disk'"),
        (("LARGE", "--target", "disk"), 2, "write disk=VALUE"),
        (("LARGE", "--allow", "all"), 2, "unknown consent"),
        (("LARGE", "-f", "persist"), 2, "has no SET PERSIST"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    run, tmp_path, arguments, code, message
):
    done = shown("export", run, *arguments, "-o", tmp_path / "kept")
    assert done.returncode == code, done.stderr
    assert message in done.stderr
    assert not (tmp_path / "kept").exists()


def test_a_folder_with_files_stays_as_it_is(run, tmp_path):
    (tmp_path / "mine").write_text("mine")
    done = shown("export", run, "LARGE", "-f", "mycnf", "-o", tmp_path)
    assert done.returncode == 2
    assert "is not empty" in done.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["mine"]


def test_root_writes_to_no_folder_that_another_user_can_change(run):
    """He would put a link in it, and choose where the files of root go."""
    folder = open_folder()
    theirs = folder / "theirs"
    theirs.mkdir()
    os.chown(theirs, 65534, 65534)
    try:
        for out in (theirs, theirs / "kept"):
            done = shown("export", run, "LARGE", "-f", "mycnf", "-o", out)
            assert done.returncode == 4, done.stderr
            assert "not safe for root" in done.stderr
        assert list(theirs.iterdir()) == []
    finally:
        shutil.rmtree(folder)


def test_weaker_durability_is_carried_with_consent_and_a_warning(run, tmp_path):
    out = tmp_path / "kept"
    argv = ("export", run, "LOSSY", "-f", "mycnf", "-o", out, "--allow", "weaker-durability")
    done = shown(*argv)
    assert done.returncode == 0, done.stderr
    assert "durability weaker" in next(out.glob("apply/**/*.cnf")).read_text()


def test_a_server_without_what_was_kept_has_drift(run, tmp_path):
    """A server that runs with none of it: each setting is named; one that has it, kept."""
    out = tmp_path / "kept"
    assert shown("export", run, "LARGE", "-o", out, "--target", "disk=sdc").returncode == 0
    folder = open_folder()
    instance = prepare(Local(), find(Local(), "auto"), places=(folder / "home", folder / "data"))
    instance.place.owned.write_text("[mysqld]\n")
    try:
        instance.initialise()
        instance.start()
        defaults = instance.place.admin
        done = shown("verify", out, "--server", defaults, "--json")
        assert done.returncode == 1, done.stderr
        found = {row["key"]: row["state"] for row in json.loads(done.stdout)}
        assert found["mysqld.sort_buffer_size"] == "changed"
        assert found["limits.nofile"] == "changed"
        option = next(out.glob("apply/**/*.cnf")).read_text()
        instance.stop()
        instance.place.owned.write_text(option)
        instance.start()
        done = shown("verify", out, "--server", defaults)
        assert "mysqld.sort_buffer_size  512K         512K    524288\n" in done.stdout
    finally:
        instance.close()
        shutil.rmtree(folder)
    lost = shown("verify", tmp_path)
    assert lost.returncode == 2
    assert "name a folder that mydyno export wrote" in lost.stderr
