"""What looks like ours after a while, and is not: a process's number, a folder, a server."""

import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.campaign.plan import plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.host import Completed, Local, processes
from mydyno.host.files import identity, is_same
from mydyno.host.local import end, started_at
from mydyno.journal import register
from mydyno.journal.records import Made, MemoryRecords
from mydyno.model import Action, HostError, RefusedError, SpecError
from mydyno.server.existing import BENCH, DATABASE, dropped
from mydyno.testbed import existing_bench
from unit.hot_spec import HOT

HOST = Environment(2**33, 4, "mysql", (8, 0, 33))
SPEC = HOT + '[protocol]\nreset = "none"\n[stack]\nserver = "existing:{}"\n'


def test_a_number_that_another_process_has_by_now_is_not_killed():
    with subprocess.Popen(["sleep", "60"]) as other:
        end(other.pid, started_at(other.pid) - 1)  # ours, of that number, began earlier
        assert other.poll() is None
        other.kill()


class Far:
    """This host, reached as another: signals go by commands."""

    name = "far"

    def run(self, action, *, timeout_s=60.0):
        return Local().run(action, timeout_s=timeout_s)


def test_a_number_is_compared_again_by_the_command_that_kills(monkeypatch):
    """Between a look over ssh and the kill a link may have been cut for a minute."""
    with subprocess.Popen(["sleep", "60"]) as other:
        now = processes.identify(Local(), other.pid)
        looks = iter([True, False])
        monkeypatch.setattr(processes, "alive", lambda *_: next(looks))
        for another in ({"started": now.started - 1}, {"boot": "earlier"}):
            assert processes.kill(Far(), replace(now, **another))
            with pytest.raises(subprocess.TimeoutExpired):
                other.wait(0.3)
            looks = iter([True, False])
        assert processes.kill(Far(), now)
        assert other.wait(10) == -signal.SIGKILL


def test_words_are_english_and_a_folder_is_known_without_them(tmp_path, monkeypatch):
    """A translated `directory` made every folder one that was not ours."""
    monkeypatch.setenv("LC_ALL", "de_DE.UTF-8")
    shown = Local().run(Action(("sh", "-c", "echo $LC_ALL"))).stdout
    assert shown == b"C\n"
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").touch()
    assert identity(Local(), tmp_path)["inode"] == str(tmp_path.stat().st_ino)
    for name in ("link", "file"):
        with pytest.raises(HostError, match="not a folder"):
            identity(Local(), tmp_path / name)


def test_a_database_is_not_dropped_on_another_server(tmp_path):
    """The option file may name another server by now, whose database it is not."""
    client = tmp_path / "mariadb"
    client.write_text('#!/bin/sh\nread -r text\necho "$text" >>"$0.log"; echo db2 /data 3306\n')
    client.chmod(0o755)

    class Named(Far):
        def run(self, action, *, timeout_s=60.0):
            found = Completed(action, 0, f"{client}\n".encode(), b"")
            return found if action.argv[0] == "sh" else super().run(action, timeout_s=timeout_s)

    records = MemoryRecords()
    for server in ("db1 /data 3306", "db2 /data 3306"):
        records.add(Made(BENCH, DATABASE, {"at": "/x.cnf", "server": server}))
        removed, failed = dropped(Named(), records)
        asked = Path(f"{client}.log").read_text()
        assert ("DROP" in asked) == bool(removed) == (server[:3] == "db2")
        assert bool(failed) == (server[:3] == "db1")


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
        existing_bench.refuse(campaign, existing, options, planned=False)
