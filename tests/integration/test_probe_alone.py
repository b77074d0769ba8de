"""The programs' static build where there is nothing else: in an empty root directory."""

import os
import shutil
import subprocess

import pytest

from integration.probe_steps import binary
from mydyno.sample.probe_file import read

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="chroot needs root")
LOG = "# Query_time: 0.25  Lock_time: 0.0 Rows_sent: 1  Rows_examined: 1\nselect 1;\n"
MOUNT = "mount -t proc none proc && mount --rbind /sys sys && "


@pytest.fixture
def root(tmp_path):
    place = tmp_path / "root"
    for name in ("proc", "sys"):
        (place / name).mkdir(parents=True)
    shutil.copy(binary(), place / "mydyno-probe")
    return place


def run(root, *argv, before=""):
    """Run the program in the directory, with mounts that end with it."""
    script = f'{before}exec chroot . /mydyno-probe "$@"'
    apart = ("unshare", "--mount", "sh", "-c", script, "sh", *argv)
    return subprocess.run(apart, cwd=root, capture_output=True, text=True, timeout=300, check=False)


def test_a_log_is_digested(root):
    (root / "slow.log").write_text(LOG)
    done = run(root, "digest", "--json", "/slow.log")
    assert (done.returncode, done.stderr) == (0, "")
    assert '"query_time_s": 0.25' in done.stdout.replace('":0', '": 0')


def test_a_host_is_sampled(root):
    done = run(root, "sample", "--out", "/host.bin", "--duration", "6s", before=MOUNT)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    sampled = read(root / "host.bin")
    assert len(sampled.seqs) >= 3
    assert len(sampled.columns) > 300


def test_a_missing_proc_is_reported_and_nothing_is_left(root):
    done = run(root, "sample", "--out", "/host.bin", "--duration", "3s")
    assert done.returncode == 2
    assert "/proc is not mounted" in done.stderr
    assert not (root / "host.bin").exists()
