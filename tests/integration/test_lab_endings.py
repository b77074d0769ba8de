"""Lab disks that end, are lost or are left over: nothing of them stays."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from integration.lab_steps import HOST, MIB, SIZE, digest, lab_maker, run, traces, within
from mydyno.lab import Caps, LabSpec, attach, create, down, listing, sweep
from mydyno.lab.process import alive
from mydyno.model import HostError, RefusedError, SpecError

pytestmark = pytest.mark.root


@pytest.fixture(autouse=True)
def run_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("MYDYNO_RUN_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def lab(tmp_path):
    with lab_maker(tmp_path) as make:
        yield make


def test_a_class_nobody_sells_leaves_nothing(tmp_path):
    with pytest.raises(SpecError, match="azure-p5"):
        create(HOST, LabSpec("lab", SIZE, "azure-p5"), tmp_path / "lab")
    assert traces(tmp_path / "lab") == []
    assert listing() == ()


def test_two_labs_live_side_by_side_and_a_name_is_taken_once(lab, tmp_path):
    one, two = lab("one"), lab("two")
    assert one.device != two.device
    run("dd", "if=/dev/urandom", f"of={one.device}", "bs=1M", "count=4", "oflag=direct")
    assert digest(one.device) != digest(two.device)
    assert [s.spec.lab for s in listing(HOST)] == ["one", "two"]
    with pytest.raises(RefusedError, match="lab down one"):
        create(HOST, LabSpec("one", SIZE), tmp_path / "other")
    assert attach(HOST, "one").stats()["pid"] == one.state.daemon.pid
    one.remove()
    assert traces(tmp_path / "one") == []
    assert two.stats()["capped"] is False
    assert sweep() == ()  # its owner lives


def test_a_detached_lab_lives_until_it_is_taken_down(tmp_path):
    disk = create(HOST, LabSpec("lab", SIZE), tmp_path / "lab", detached=True)
    assert sweep() == ()
    assert down("lab")
    disk.running.stop()
    assert traces(tmp_path / "lab") == []
    with pytest.raises(SpecError, match="not on localhost"):
        down("lab")


def put_to_use(device, target, kind="ext4"):
    """A mounted filesystem with something that is not written out yet."""
    target.mkdir(exist_ok=True)
    run(f"mkfs.{kind}", "-q", device)
    run("mount", device, target)
    (target / "file").write_bytes(b"x" * MIB)


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lab_in_use_whose_daemon_is_lost_is_removed_whole(lab, tmp_path, kind, number):
    disk = lab()
    put_to_use(disk.device, tmp_path / "mnt", kind)
    os.kill(disk.state.daemon.pid, number)
    began = time.monotonic()
    disk.remove()
    assert time.monotonic() - began < 3
    assert traces(tmp_path / "lab") == []
    assert not os.path.ismount(tmp_path / "mnt")


def test_a_lab_in_use_is_removed_without_waiting_for_its_caps(lab, tmp_path):
    disk = lab(caps=Caps(bytes_per_s=1e6))
    disk.cap(on=False)
    put_to_use(disk.device, tmp_path / "mnt")
    (tmp_path / "mnt" / "file").write_bytes(b"x" * 30 * MIB)
    disk.cap(on=True)
    began = time.monotonic()
    disk.remove()
    assert time.monotonic() - began < 3
    assert traces(tmp_path / "lab") == []


def test_what_is_still_in_use_is_named_and_removed_later(lab, tmp_path):
    disk = lab()
    with Path(disk.device).open("rb"):
        with pytest.raises(HostError, match=disk.device):
            disk.remove()
        assert [s.phase for s in listing()] == ["removing"]
    disk.remove()
    assert traces(tmp_path / "lab") == []
    assert listing() == ()


def test_a_daemon_told_to_end_unmounts(lab, tmp_path):
    disk = lab()
    run("losetup", "--detach", disk.device)
    os.kill(disk.state.daemon.pid, signal.SIGTERM)
    assert within(3, lambda: not alive(HOST, disk.state.daemon))
    assert not os.path.ismount(tmp_path / "lab" / "fuse")
    assert disk.running.returncode() == 0


OWNER = """
import sys, time
from pathlib import Path
from mydyno.host import Local
from mydyno.lab import LabSpec, create
disk = create(Local(), LabSpec("lab", int(sys.argv[2])), Path(sys.argv[1]), keep=len(sys.argv) > 3)
if len(sys.argv) > 3:
    disk.freeze()
print(disk.device, flush=True)
time.sleep(600)
"""


def killed_owner(home, *more, before=lambda device: None):
    """Let another process make a lab, do something with it, and kill that process."""
    script = [sys.executable, "-c", OWNER, str(home), str(SIZE), *more]
    with subprocess.Popen(script, stdout=subprocess.PIPE) as owner:
        device = owner.stdout.readline().decode().strip()
        before(device)
        owner.kill()
    return device


def test_what_a_killed_owner_left_is_swept(tmp_path):
    target = tmp_path / "mnt"
    home = tmp_path / "lab"
    killed_owner(home, before=lambda device: put_to_use(device, target))
    assert traces(home)
    lines = sweep()
    assert len(lines) == 1
    assert "left over" in lines[0]
    assert traces(home) == []
    assert not os.path.ismount(target)
    assert listing() == sweep() == ()


def test_its_daemon_ends_with_its_owner(tmp_path):
    home = tmp_path / "lab"
    device = killed_owner(home)
    state = listing()[0]
    assert within(4, lambda: not alive(HOST, state.daemon))
    sweep()
    assert traces(home) == []
    assert not Path(f"/sys/block/{Path(device).name}/loop/backing_file").exists()


def test_a_kept_base_is_used_again_by_who_resumes(tmp_path, lab):
    home = tmp_path / "lab"

    def fill(device):
        run("dd", "if=/dev/zero", f"of={device}", "bs=1M", "count=1", "oflag=direct")

    killed_owner(home, "keep", before=fill)
    sweep()
    assert listing()[0].phase == "kept"
    assert {p.name for p in home.iterdir()} == {"base.img", "golden.json"}
    disk = lab()
    assert disk.frozen
    disk.drop()
    disk.remove()
    assert traces(home) == []


def test_a_base_of_another_boot_is_not_trusted(tmp_path, lab):
    home = tmp_path / "lab"
    disk = lab()
    disk.freeze()
    disk.remove(keep_base=True)
    (home / "golden.json").write_text('{"size": 335544320, "boot": "another"}')
    assert not lab().frozen


@pytest.mark.parametrize("phase", ["starting", "attaching", "removing"])
def test_a_lab_cut_short_in_any_phase_is_swept(tmp_path, run_dir, phase):
    """The record as it was when its owner died: the daemon's id may not have been written."""
    home = tmp_path / "lab"
    killed_owner(home)
    record = run_dir / "labs" / "lab.json"
    words = json.loads(record.read_text()) | {"phase": phase, "device": ""}
    record.write_text(json.dumps(words | ({"daemon": None} if phase == "starting" else {})))
    sweep()
    assert within(3, lambda: traces(home) == [])
    assert listing() == ()
