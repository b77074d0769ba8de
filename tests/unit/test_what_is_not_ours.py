"""What looks like ours after a while, and is not: a process's number, a folder, a server."""

import subprocess
from types import SimpleNamespace

import pytest

from mydyno.campaign.plan import plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.host import Local
from mydyno.host.files import identity, is_same
from mydyno.host.local import end, started_at
from mydyno.journal import register
from mydyno.model import RefusedError, SpecError
from mydyno.testbed import existing_bench
from unit.hot_spec import HOT

HOST = Environment(2**33, 4, "mysql", (8, 0, 33))
SPEC = HOT + '[protocol]\nreset = "none"\n[stack]\nserver = "existing:{}"\n'


def test_a_number_that_another_process_has_by_now_is_not_killed():
    with subprocess.Popen(["sleep", "60"]) as other:
        end(other.pid, started_at(other.pid) - 1)  # ours, of that number, began earlier
        assert other.poll() is None
        other.kill()


def test_a_folder_is_the_same_after_a_boot_has_given_its_disk_another_number(tmp_path):
    made = identity(Local(), tmp_path)
    moved = {**made, "device": "4711"}
    assert is_same(made, made)
    assert not is_same(moved, made)  # another disk is mounted there
    assert is_same({**moved, "boot": "another"}, made)
    assert not is_same({**moved, "boot": "another", "inode": "1"}, made)
    assert not is_same(moved, {"device": made["device"], "inode": made["inode"]})  # recorded before


def test_a_run_directory_is_no_copy_of_itself_after_a_boot(tmp_path, monkeypatch):
    monkeypatch.setattr(register, "state_place", lambda: tmp_path / "state")
    folder = tmp_path / "run"
    folder.mkdir()
    register.RunDir(folder).claim(Local())
    records = register.register(folder, "c", "local")
    (this,) = records.entries()
    records.add(register.Registered(**{**_fields(this), "device": this.device + 1}))
    records.close()
    assert register.find(folder) is not None


def _fields(entry):
    return {name: getattr(entry, name) for name in entry.__struct_fields__}


@pytest.mark.parametrize(
    ("process", "options", "error", "words"),
    [
        (None, "/etc/x.cnf", RefusedError, "its server does not run on here"),
        (object(), "x.cnf", SpecError, "write the path of the option file from / on"),
    ],
)
def test_a_server_elsewhere_gets_no_load_here(process, options, error, words):
    text = SPEC.format(options)
    campaign = plan(decode(text, "x.toml"), text, "x.toml", HOST)
    existing = SimpleNamespace(process=process, host=SimpleNamespace(name="here"))
    with pytest.raises(error, match=words):
        existing_bench.refuse(campaign, existing, options)
