"""The limits of a systemd service: in the process, noted, and gone with the drop-in."""

import pytest

from mydyno.host import ask
from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import Action
from mydyno.stack import Ledger, Site, converge
from mydyno.stack.service import FILE, ServiceLimits

UNIT = "cron-like.service"
_TEXT = b"[Service]\nExecStart=/usr/bin/sleep infinity\nLimitNOFILE=4096\n"


def run(guest, *argv, stdin=b""):
    return guest.run(Action(argv, stdin)).check().stdout.decode()


@pytest.fixture
def service(guest):
    path = f"/etc/systemd/system/{UNIT}"
    run(guest, "install", "-m", "644", "/dev/stdin", path, stdin=_TEXT)
    run(guest, "systemctl", "daemon-reload")
    run(guest, "systemctl", "start", UNIT)
    yield ServiceLimits(UNIT)
    run(guest, "systemctl", "stop", UNIT)
    run(guest, "rm", "-rf", path, f"{path}.d")
    run(guest, "systemctl", "daemon-reload")


def test_limits_reach_the_process_and_go_back_without_a_trace(guest, service, timed):
    site, ledger = Site("db", guest, (service,)), Ledger(MemoryRecords(), MemoryJournal())
    want = {"db/limits.nofile": "65536", "db/limits.memlock": "unlimited"}
    before = dict(ask(guest, service.observe()))
    assert before["nofile"] == "4096"
    with timed("limits of a service, and back"):
        converge(site, want, ledger, 0)
        now = ask(guest, service.observe())
        assert (now["nofile"], now["memlock"]) == ("65536", "unlimited")
        assert converge(site, want, ledger, 1) == []
        pid = run(guest, "systemctl", "show", "-P", "MainPID", UNIT).strip()
        assert "65536" in run(guest, "grep", "Max open files", f"/proc/{pid}/limits")
        assert {c.key for c in converge(site, {}, ledger, 2)} == set(want)
    after = dict(ask(guest, service.observe()))
    assert after == before
    assert guest.run(Action(("test", "-e", f"{service.folder}/{FILE}"))).returncode == 1
