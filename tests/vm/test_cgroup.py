"""A host with cgroup v2 only: the sampler sees what a service uses, and what its group denies."""

import shlex
from pathlib import Path

import numpy as np
import pytest

from mydyno.host.files import remote_work_folder, uploaded_program
from mydyno.model import Action
from mydyno.sample import probe_binary
from mydyno.sample.probe_file import read

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
