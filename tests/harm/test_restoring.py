"""What a campaign changes is as it was before, between its treatments and at its end.

Attacks and faults here use commands and files only.
"""

import json
import os
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import mydyno
from harm.campaigns import ENDLESS, CampaignDisk, campaign_disk

pytestmark = [
    pytest.mark.root,
    pytest.mark.alone,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
]

# Each trial notes what the host shows while its load runs.
LOAD = """
import json, os, pathlib, sys
mount, disk, note = sys.argv[1:4]
lines = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
options = next(l for l in lines if l.split()[4] == mount)
queue = {}
for path in sorted(pathlib.Path(f"/sys/block/{disk}/queue").rglob("*")):
    try:
        queue[str(path)] = path.read_text() if path.is_file() else ""
    except OSError:
        pass
vm = {n: pathlib.Path("/proc/sys/vm", n).read_text() for n in SYSCTLS}
seen = {"mount": options.split()[5:], "queue": queue, "vm": vm}
seen["treatment"] = os.environ["MYDYNO_TREATMENT"]
with open(note, "a") as file:
    print(json.dumps(seen), file=file)
for second in range(1, 40):
    print(json.dumps({"t_s": second, "tps": 100 + second % 3}), flush=True)
"""
SYSCTLS = (
    "dirty_bytes",
    "dirty_ratio",
    "dirty_background_bytes",
    "dirty_background_ratio",
    "overcommit_kbytes",
    "overcommit_ratio",
    "overcommit_memory",
    "swappiness",
)


class Watched(CampaignDisk):
    """A disk whose load notes what the host shows while it runs."""

    def __init__(self, folder, kind):
        super().__init__(folder, kind)
        self.note = folder / "seen"
        load = LOAD.replace("SYSCTLS", repr(SYSCTLS))
        self.argv = self.program(load, self.mount, self.disk, self.note)

    def shown(self):
        """Return what the host shows of the mount, the queue and the sysctls."""
        self.note.unlink(missing_ok=True)
        env = {**os.environ, "MYDYNO_TREATMENT": ""}
        subprocess.run(self.argv, env=env, check=True, capture_output=True)
        (seen,) = self.seen()
        self.note.unlink()
        return seen

    def seen(self):
        return [json.loads(line) for line in self.note.read_text().splitlines()]


def watched(kind="ext4"):
    return campaign_disk(lambda folder: Watched(folder, kind))


def campaign(there, treatments, **more):
    spec = there.written(treatments, there.argv, **more)
    return mydyno("run", spec, "-o", there.out, "--allow", "host")


def same(there, before):
    after = there.shown()
    assert after == before


MOUNTS = {
    "ext4": (
        *("noatime", "nodiratime", "strictatime", "lazytime", "sync", "dirsync", "nodev"),
        *("nosuid", "noexec", "commit=60", "discard", "nobarrier", "barrier=0"),
        *("noauto_da_alloc", "nodelalloc", "errors=continue", "stripe=8", "mand"),
    ),
    "xfs": ("noatime", "lazytime", "nodev", "sync", "discard", "wsync", "nosuid"),
    "btrfs": ("noatime", "commit=60", "discard", "nodatasum", "nodatacow", "compress=zstd", "sync"),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", MOUNTS)
def test_every_mount_option_is_gone_in_the_next_treatment_and_at_the_end(kind):
    """A remount adds options; without equality all that took effect stayed, also in STOCK."""
    with watched(kind) as there:
        before = there.shown()
        took = 0
        for number, option in enumerate(MOUNTS[kind]):
            there.out = there.mount / f"run{number}"
            done = campaign(there, {"ONE": {"fs.mount": option}}, blocks=2)
            assert done.returncode in {0, 2, 3, 4}, (option, done.stderr)
            assert "Traceback" not in done.stderr, (option, done.stderr)
            seen = there.seen() if there.note.exists() else []
            stock = [s["mount"] for s in seen if s["treatment"] == "STOCK"]
            assert all(s == before["mount"] for s in stock), (option, stock)
            took += any(s["mount"] != before["mount"] for s in seen)
            same(there, before)
        assert took >= 4


def test_a_schedulers_change_takes_nothing_along():
    with watched() as there:
        queue = Path(f"/sys/block/{there.disk}/queue")
        (queue / "scheduler").write_text("mq-deadline")
        (queue / "nr_requests").write_text("77")
        (queue / "iosched/fifo_batch").write_text("3")
        (queue / "iosched/read_expire").write_text("321")
        before = there.shown()
        treatments = {
            "KYBER": {"block.scheduler": "kyber", "block.nr_requests": 99},
            "NONE": {"block.scheduler": "none"},
            "BATCH": {"block.iosched.fifo_batch": 9},
        }
        done = campaign(there, treatments, blocks=2)
        assert done.returncode == 0, done.stderr
        stock = [s for s in there.seen() if s["treatment"] == "STOCK"]
        assert len(stock) >= 2
        assert all(s["queue"] == before["queue"] for s in stock)
        same(there, before)


@pytest.mark.parametrize(
    ("first", "want"),
    [
        ({"overcommit_kbytes": "0", "overcommit_ratio": "47"}, {"overcommit_kbytes": 2 << 24}),
        ({"overcommit_kbytes": str(2 << 24)}, {"overcommit_ratio": 60}),
        ({"dirty_ratio": "21"}, {"dirty_bytes": 1 << 28}),
        ({"dirty_bytes": str(1 << 28)}, {"dirty_ratio": 11}),
        ({"dirty_background_ratio": "7"}, {"dirty_background_bytes": 1 << 27}),
    ],
)
def test_paired_sysctls_that_zero_each_other_come_back_both(first, want):
    folder = Path("/proc/sys/vm")
    found = {name: (folder / name).read_text() for name in SYSCTLS}
    try:
        for name, value in first.items():
            (folder / name).write_text(value)
        with watched() as there:
            before = there.shown()
            done = campaign(there, {"ONE": {f"kernel.sysctl.vm.{k}": v for k, v in want.items()}})
            assert done.returncode == 0, done.stderr
            assert any(s["vm"] != before["vm"] for s in there.seen())
            same(there, before)
    finally:
        for name, value in found.items():
            if value.strip() != "0" and not name.endswith("bytes"):
                (folder / name).write_text(value)


@contextmanager
def killed(there, settings):
    """Yield swappiness after a campaign was killed while a treatment that sets it was in force."""
    swappiness = Path("/proc/sys/vm/swappiness")
    first = swappiness.read_text()
    there.spec({"kernel.sysctl.vm.swappiness": 43, **settings}, ENDLESS, more="seed = 1")
    try:
        with subprocess.Popen(there.run_command(), stderr=subprocess.PIPE) as process:
            until(lambda: there.begun.exists() and swappiness.read_text() == "43\n", process)
            process.kill()
        yield swappiness, first
    finally:
        swappiness.write_text(first)


def until(condition, process, patience_s=300):
    end = time.monotonic() + patience_s
    while not condition():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize("foreign", [False, True], ids=["ours", "somebody-elses"])
def test_rollback_restores_what_we_set_and_leaves_what_somebody_else_set(foreign):
    more = {"kernel.sysctl.vm.dirty_expire_centisecs": 2900}
    with campaign_disk() as there, killed(there, more) as (swappiness, first):
        shown = mydyno("plan", there.folder / "spec.toml")
        assert "db/kernel.sysctl.vm.swappiness" in shown.stderr
        shown = mydyno("inspect")
        assert str(there.out) in shown.stderr
        other = mydyno("run", there.folder / "spec.toml", "-o", there.mount / "other")
        assert other.returncode == 4
        if foreign:
            swappiness.write_text("44")
        unnamed = mydyno("rollback")
        assert (unnamed.returncode, unnamed.stdout) == (0, ""), unnamed.stdout
        assert f"mydyno rollback {there.out}" in unnamed.stderr
        done = mydyno("rollback", there.out)
        assert done.returncode == 0, done.stderr
        assert "restored: db/kernel.sysctl.vm.dirty_expire_centisecs" in done.stdout
        if foreign:
            assert swappiness.read_text() == "44\n"
            assert "left as it is: db/kernel.sysctl.vm.swappiness is 44" in done.stdout
        else:
            assert swappiness.read_text() == first
        again = mydyno("rollback", there.out)
        assert again.stdout == "nothing to restore\n", again.stdout
        assert "sysctl" not in mydyno("inspect").stderr


def test_a_moved_run_directory_restores_and_a_copy_is_refused():
    with campaign_disk() as there, killed(there, {}) as (swappiness, first):
        shutil.copytree(there.out, there.mount / "copy")
        done = mydyno("rollback", there.mount / "copy")
        assert done.returncode == 4
        assert "is a copy of" in done.stderr
        assert swappiness.read_text() == "43\n"
        there.out.rename(there.mount / "moved")
        done = mydyno("rollback", there.mount / "moved")
        assert done.returncode == 0, done.stderr
        assert swappiness.read_text() == first


def test_the_record_of_a_deleted_run_directory_restores_the_host():
    with campaign_disk() as there, killed(there, {}) as (swappiness, first):
        shutil.rmtree(there.out)
        assert mydyno("rollback", there.out).returncode == 0
        assert swappiness.read_text() == first


@pytest.mark.parametrize("again", [False, True], ids=["unmarked", "another-folder"])
def test_a_run_directory_without_its_marker_restores_the_host(again):
    """Half deleted, or made again by the user: its records know the directory by its path."""
    with campaign_disk() as there, killed(there, {}) as (swappiness, first):
        (there.out / "campaign-id").unlink()
        if again:
            shutil.rmtree(there.out)
            there.out.mkdir()
            (there.out / "mine").write_text("")
        done = mydyno("rollback", there.out)
        assert done.returncode == 0, done.stderr
        assert swappiness.read_text() == first
        assert not again or [p.name for p in there.out.iterdir()] == ["mine"]
