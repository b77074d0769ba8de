"""The record of the labs survives damage, or reports what is wrong."""

import os
import signal
import stat
import subprocess
from dataclasses import replace

import pytest

from mydyno.host import Local, Process
from mydyno.host.local import signal_same
from mydyno.host.processes import alive, identify, parse_started
from mydyno.journal.register import clear_parts
from mydyno.lab import LabSpec, listing
from mydyno.lab.values import Caps, LabState, Loop, Registry, registry
from mydyno.model import HostError, SpecError

STAT = b"7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 4242 9 9\n"


def state(lab="one", **more):
    spec = LabSpec(lab, 4096, "azure-p15", 0.5, Caps(iops=10))
    return LabState(spec, "localhost", "/home/of/it", "starting", Process(1, 2), **more)


def test_what_is_written_is_read(tmp_path):
    labs = Registry(tmp_path / "labs")
    first = labs.write(state())
    second = labs.write(state("two", loop=Loop("/dev/loop3"), keep=True))
    assert labs.all() == (first, second)
    assert labs.read("one") == first
    assert labs.step(first, "up") == labs.read("one") == replace(first, phase="up")


def test_what_is_forgotten_is_gone_and_may_be_forgotten_again(tmp_path):
    labs = Registry(tmp_path)
    labs.write(state())
    labs.forget("one")
    labs.forget("one")
    assert labs.all() == ()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "junk", [b"", b"{", b"[]", b'{"spec": 1}', b'{"version": "x"}', b'{"version": 2}']
)
def test_a_record_that_cannot_be_read_is_named(tmp_path, junk):
    (tmp_path / "one.json").write_bytes(junk)
    with pytest.raises(HostError, match=r"one\.json"):
        Registry(tmp_path).all()


@pytest.mark.parametrize(("version", "age"), [(2, "an older"), (4, "a newer")])
def test_a_record_of_another_version_is_left_alone(tmp_path, version, age):
    (tmp_path / "one.json").write_bytes(b'{"version": %d, "lab": {}}' % version)
    with pytest.raises(HostError, match=f"{age} mydyno"):
        Registry(tmp_path).read("one")


def test_only_the_owner_can_read_a_record(tmp_path):
    Registry(tmp_path / "labs").write(state())
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (tmp_path / "labs", *tmp_path.rglob("*.json"))]
    assert modes == [0o700, 0o600]


@pytest.mark.parametrize(
    "name", ["", ".", "..", "../one", "a/b", "/etc/one", "-a", "a" * 65, "a\n"]
)
def test_a_name_is_one_part_of_a_path(tmp_path, name):
    with pytest.raises(SpecError, match="use up to 64"):
        Registry(tmp_path).read(name)


def test_a_half_written_record_is_not_seen(tmp_path):
    labs = Registry(tmp_path)
    labs.write(state())
    (tmp_path / ".one.99").write_bytes(b"{")
    assert len(labs.all()) == 1


def test_the_folder_can_be_moved_and_hosts_are_kept_apart(tmp_path, monkeypatch):
    monkeypatch.setattr("mydyno.lab.values.state_folder", tmp_path.joinpath)
    registry().write(state())
    registry().write(replace(state("two"), host="ssh://db1"))
    assert [s.spec.lab for s in listing(Local())] == ["one"]
    assert len(registry().all()) == 2


def test_a_start_time_is_read_past_any_name():
    assert parse_started(STAT) == 4242


@pytest.mark.parametrize("raw", [b"", b"7 (a) S 1", STAT.replace(b") S ", b") Z ")])
def test_an_ended_process_has_no_start_time(raw):
    assert parse_started(raw) is None


def test_a_recycled_id_is_another_process():
    me = identify(Local(), os.getpid())
    assert me is not None
    assert alive(Local(), me)
    assert not alive(Local(), replace(me, started=me.started + 1))
    assert not alive(Local(), replace(me, program="/bin/another"))
    assert not alive(Local(), replace(me, boot="another"))
    assert alive(Local(), replace(me, program=""))
    assert not alive(Local(), None)


def test_a_process_that_took_over_a_number_is_not_signalled():
    child = subprocess.Popen(["sleep", "30"])
    try:
        signal_same(child.pid, signal.SIGKILL, lambda: False)
        with pytest.raises(subprocess.TimeoutExpired):
            child.wait(0.3)
        signal_same(child.pid, signal.SIGKILL, lambda: True)
        assert child.wait(5) == -signal.SIGKILL
    finally:
        child.kill()
        child.wait()


def test_a_record_that_a_killed_process_left_half_written_is_removed(tmp_path):
    """A kill between the writing of a record and its rename leaves the part."""
    dead, living = tmp_path / ".one.4194305", tmp_path / f".two.{os.getpid()}"
    for part in (dead, living, tmp_path / "one.json"):
        part.write_text("{")
    clear_parts(tmp_path)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([living.name, "one.json"])
