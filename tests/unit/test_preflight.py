"""Before anything is made: a missing tool, too little room and a busy host are told."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.campaign.preflight import busy, preflight
from mydyno.campaign.spec import decode
from mydyno.host import Local
from mydyno.measure.facts import work
from mydyno.model import RefusedError, SpecError

SPEC = """
[stack]
device = { lab = "loop", size = "8G" }
[workloads.rw]
tool = "sysbench-oltp"
script = "oltp_read_write"
"""


def check(folder):
    preflight(Local(), decode(SPEC, "s.toml"), {}, folder)


def test_a_missing_tool_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(SpecError, match="sysbench is not installed; apt-get install sysbench"):
        check(tmp_path)


def test_too_little_room_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=5 << 30))
    with pytest.raises(RefusedError, match=r"5\.0 GiB free, and this campaign may need 9\.0"):
        check(tmp_path / "not" / "there" / "yet")


def test_enough_room_passes(monkeypatch, tmp_path):
    monkeypatch.setattr(shutil, "which", lambda tool: f"/usr/bin/{tool}")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=10 << 30))
    check(tmp_path)
    assert list(Path(tmp_path).iterdir()) == []


def test_a_busy_host_is_told():
    assert busy(0.1) == ()
    assert "on 1.5 cores" in busy(1.5)[0]


def test_ticks_are_counted_as_the_kernel_does():
    raw = b"cpu  10 1 20 500 30 2 3 4 0 0\ncpu0 5 0 10 250 15 1 1 2 0 0\ncpu1 5 1 10 250 15 1 2 2\n"
    assert work(raw) == (40, 570, 2)
