"""A host with cgroup v2 only: the sampler sees what a service uses, and what its group denies."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from mydyno.host import ask
from mydyno.host.files import remote_work_folder, uploaded_program
from mydyno.model import Action
from mydyno.sample import probe_binary
from mydyno.sample.probe_file import read
from mydyno.stack.cgroup import Cgroup, joined, refusal
from mydyno.stack.launch_file import Server

BUSY = (
    "systemd-run --quiet --unit busy -p CPUQuota=20% -p MemoryMax=200M sh -c 'while :; do :; done'"
)


def words(guest, *argv):
    return guest.run(Action(argv)).check().stdout.decode().split()


def test_a_limited_service_is_seen_to_be_limited(guest, tmp_path):
    assert words(guest, "stat", "-fc", "%T", "/sys/fs/cgroup") == ["cgroup2fs"]
    program = uploaded_program(guest, probe_binary())
    words(guest, *shlex.split(BUSY))
    try:
        (pid,) = words(guest, "systemctl", "show", "-P", "MainPID", "busy")
        with remote_work_folder(guest, tmp_path) as there:
            sample = ("sample", "--out", str(there / "h.bin"), "--duration", "5s")
            words(guest, program, *sample, "--process", f"server={pid}")
    finally:
        words(guest, "systemctl", "stop", "busy")
    found = read(Path(tmp_path / "h.bin"))
    limit, memory, withheld = (
        found.find(f"cgroup.{name}", "server")
        for name in ("cpu_limit", "memory_limit", "throttled")
    )
    assert np.nanmax(limit) == pytest.approx(0.2)
    assert np.nanmax(memory) == 200 << 20
    assert np.nanmax(withheld) > np.nanmin(withheld)


def test_a_private_servers_quota_is_a_scope_of_systemd(guest):
    """There `cpu` is not among the root group's controllers, until a unit has a quota."""
    assert ask(guest, refusal()) == ""
    (home,) = words(guest, "mktemp", "-d")
    words(guest, "mkdir", f"{home}/launch")
    places = (Path(home, name) for name in ("launch/cgroup", "pid", "my.cnf"))
    layer = Cgroup(Server(*places))

    def write(wanted):
        for change in layer.plan(ask(guest, layer.observe()), wanted):
            guest.run(change.action).check()

    write({"cpu": "30%", "period": "20ms"})
    busy = ("sh", "-c", "while :; do :; done")
    running = guest.start(Action(joined(Path(home), {"max": "6000 20000"}, busy)))
    try:
        pid = Action(("tee", str(layer.server.pid_file)), f"{running.pid}\n".encode())
        guest.run(pid).check()
        until_there = Action(
            ("sh", "-c", f"until systemctl -q is-active {layer.group}.scope; do :; done")
        )
        guest.run(until_there, timeout_s=60).check()
        assert ask(guest, layer.observe()) == {
            "cpu": "30%",
            "period": "20ms",
            "owned": "cpu,period",
        }
        changes = layer.plan(ask(guest, layer.observe()), {"cpu": "50%"})
        write({"cpu": "50%"})
        for action in layer.online(changes):
            guest.run(action).check()
        assert ask(guest, layer.observe())["cpu"] == "50%"
    finally:
        running.stop(grace_s=0.0)
    loaded = words(guest, "systemctl", "show", "-P", "LoadState", f"{layer.group}.scope")
    assert loaded == ["not-found"]  # nothing is left to be removed
    words(guest, "rm", "-r", home)
