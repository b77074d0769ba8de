"""The sampler beside a trial: how it is called, that it ends, and that its faults fail nothing."""

import json
import os
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.host import Local
from mydyno.model import HostError
from mydyno.sample import sampler
from mydyno.sample.sampler import Watch, Where, complaint, disk_of, sampling

STANDS_IN = """#!/usr/bin/env python3
import json, os, signal, sys
from pathlib import Path
out = Path(sys.argv[sys.argv.index("--out") + 1])
out.write_text(json.dumps(sys.argv[1:]))
{then}
"""
WAITS = "signal.sigwait([signal.SIGTERM])"
BLOCKS = "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])\n"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A stand-in that writes down its arguments; `then` is what it does next."""

    def make(then):
        path = tmp_path / "mydyno-probe"
        path.write_text(STANDS_IN.format(then=then).replace("out = ", BLOCKS + "out = "))
        path.chmod(0o755)
        monkeypatch.setattr(sampler, "probe_binary", lambda: str(path))
        return path

    return make


@pytest.fixture
def folder(tmp_path):
    made = tmp_path / "0007"
    made.mkdir()
    return made


def until(condition):
    end = time.monotonic() + 10
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    assert condition()


def written(folder):
    path = folder / "probe.bin"
    return path.exists() and path.read_text().endswith("]")


def running(folder):
    """Return the processes that name the folder."""
    mine = [p for p in Path("/proc").glob("[0-9]*/cmdline") if p.parent.name != str(os.getpid())]
    found = []
    for path in mine:
        try:
            found += [path.parent.name] if str(folder).encode() in path.read_bytes() else []
        except OSError:
            continue
    return found


def ended(pid):
    """Return whether a process has ended, be it waited for or not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_the_sampler_gets_its_targets_and_ends_with_the_load(program, folder, tmp_path):
    program(WAITS)
    watch = Watch(Where("loop3", "lo"), {"mysqld": 4711}, tmp_path / "admin.cnf")
    with sampling(Local(), folder, watch) as sampled:
        sampled.started(4711, SimpleNamespace(name="ssh://client1"))  # a number of its own host
        sampled.started(4712, Local())
        until(lambda: written(folder))
        assert running(folder) != []
    assert running(folder) == []
    argv = json.loads((folder / "probe.bin").read_text())
    pairs = dict(zip(argv[1::2], argv[2::2], strict=True))
    assert argv[0] == "sample"
    assert pairs == {
        "--out": str(folder / "probe.bin"),
        "--owner": str(os.getpid()),
        "--process-file": f"load={folder / 'load.pid'}",
        "--states": "100ms",
        "--process": "mysqld=4711",
        "--server-defaults": str(tmp_path / "admin.cnf"),
    }
    assert (folder / "load.pid").read_text() == "4712\n"
    assert json.loads((folder / "probe.json").read_text()) == {
        "disk": "loop3",
        "interface": "lo",
        "link_bytes_per_s": None,
        "caps": {},
        "below": [],
    }
    assert complaint(folder) == ""


def test_it_ends_too_when_the_load_fails(program, folder):
    program(WAITS)

    def load():
        with sampling(Local(), folder, Watch(Where())):
            until(lambda: written(folder))
            raise HostError("of the load")

    with pytest.raises(HostError, match="of the load"):
        load()
    assert running(folder) == []


def test_without_the_program_there_is_nothing_to_do(folder, monkeypatch):
    monkeypatch.setattr(sampler, "probe_binary", lambda: "")
    with sampling(Local(), folder, Watch(Where())):
        assert list(folder.iterdir()) == []
    assert complaint(folder) == ""


def test_one_that_refuses_is_quoted(program, folder):
    program('out.with_name("pid").write_text(f"{os.getpid()}.")\nsys.exit("no such option")')
    pid = folder / "pid"
    with sampling(Local(), folder, Watch(Where())):
        until(lambda: pid.exists() and pid.read_text().endswith("."))
        until(lambda: ended(pid.read_text().rstrip(".")))
    lines = complaint(folder).splitlines()
    assert lines == ["no such option", "mydyno-probe ended before the load did (exit 1)"]


def test_a_sampler_that_cannot_be_started_is_reported(folder, monkeypatch):
    monkeypatch.setattr(sampler, "probe_binary", lambda: "/nowhere/mydyno-probe")
    with sampling(Local(), folder, Watch(Where())):
        pass
    assert complaint(folder).startswith("/nowhere/mydyno-probe: not found on this host")


def test_a_folder_that_is_gone_fails_nothing(program, tmp_path):
    program(WAITS)
    nowhere = tmp_path / "gone"
    with sampling(Local(), nowhere, Watch(Where())) as sampled:
        sampled.started(1, Local())
        sampled.reported(1.0)
    assert complaint(nowhere) == ""


def test_what_lies_on_no_disk_is_on_none():
    assert disk_of(Local(), Path("/proc")) == ""
    assert disk_of(Local(), Path("/nowhere")) == ""


def test_the_disk_of_a_folder_is_one_that_the_kernel_counts(tmp_path):
    disk = disk_of(Local(), tmp_path)
    names = {line.split()[2] for line in Path("/proc/diskstats").read_text().splitlines()}
    assert disk in names | {""}
    assert not disk or Path("/sys/block", disk).exists()
