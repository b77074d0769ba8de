"""Lab disks that end, are lost or are left over: nothing of them stays."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from integration.device_steps import blank, once_free
from integration.lab_steps import HOST, MIB, SIZE, digest, lab_maker, run, traces, within
from mydyno.host.processes import alive
from mydyno.journal.register import state_folder
from mydyno.lab import InUseError, LabSpec, Stripe, create, down, listing, sweep
from mydyno.lab.values import Caps
from mydyno.model import HostError, RefusedError, SpecError

pytestmark = pytest.mark.root

_ADD, _REMOVE, _GET_FREE = 0x4C80, 0x4C81, 0x4C82  # ioctls of /dev/loop-control


@pytest.fixture
def lab(tmp_path):
    with lab_maker(tmp_path) as make:
        yield make


def test_a_class_nobody_sells_leaves_nothing(tmp_path):
    with pytest.raises(SpecError, match="azure-p5"):
        create(HOST, LabSpec("lab", SIZE, "azure-p5"), tmp_path / "lab")
    assert traces(tmp_path / "lab") == []
    assert listing(HOST) == ()


def test_two_labs_live_side_by_side_and_a_name_is_taken_once(lab, tmp_path):
    one, two = lab("one"), lab("two")
    assert one.device != two.device
    run("dd", "if=/dev/urandom", f"of={one.device}", "bs=1M", "count=4", "oflag=direct")
    assert digest(one.device) != digest(two.device)
    assert [s.spec.lab for s in listing(HOST)] == ["one", "two"]
    with pytest.raises(RefusedError, match="lab down one"):
        create(HOST, LabSpec("one", SIZE), tmp_path / "other")
    assert one.stats()["pid"] == one.state.daemon.pid
    one.remove()
    assert traces(tmp_path / "one") == []
    assert two.stats()["capped"] is False
    assert sweep(HOST) == ()  # its owner lives


def test_a_detached_lab_lives_until_it_is_removed(tmp_path):
    disk = create(HOST, LabSpec("lab", SIZE), tmp_path / "lab", detached=True)
    assert sweep(HOST) == ()
    assert down(HOST, "lab")
    disk.running.stop()
    assert traces(tmp_path / "lab") == []
    with pytest.raises(SpecError, match="does not exist on localhost"):
        down(HOST, "lab")


def test_a_lab_that_is_being_made_is_no_leftover(tmp_path):
    """Its record named no process until it was up, so that another mydyno removed it."""
    swept = []
    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(create, HOST, LabSpec("lab", SIZE), tmp_path / "lab", detached=True)
        while not made.done():
            swept += sweep(HOST)
    disk = made.result()
    try:
        (state,) = listing(HOST)
        assert (state.phase, state.owner, swept) == ("up", None, [])
    finally:
        down(HOST, "lab")
        disk.running.stop()


def put_to_use(device, target, kind="ext4"):
    """A mounted filesystem with something that is not written out yet."""
    target.mkdir(exist_ok=True)
    run(f"mkfs.{kind}", "-q", device)
    run("mount", device, target)
    (target / "file").write_bytes(b"x" * MIB)


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lab_in_use_whose_daemon_is_lost_is_removed_completely(lab, tmp_path, kind, number):
    disk = lab()
    put_to_use(disk.device, tmp_path / "mnt", kind)
    os.kill(disk.state.daemon.pid, number)
    began = time.monotonic()
    disk.remove()
    assert time.monotonic() - began < 15  # for a daemon that hangs it would be for ever
    assert traces(tmp_path / "lab") == []
    assert not os.path.ismount(tmp_path / "mnt")


def test_a_lab_is_removed_completely_after_a_search_for_its_lost_disk(lab, tmp_path):
    disk = lab()
    put_to_use(disk.device, tmp_path / "mnt")
    os.kill(disk.state.daemon.pid, signal.SIGKILL)
    backing = Path("/sys/block", disk.name, "loop/backing_file")
    until = time.monotonic() + 60
    while not backing.read_text().endswith(" (deleted)\n") and time.monotonic() < until:
        with suppress(OSError):
            (tmp_path / "lab" / "fuse" / "disk").stat()
    assert backing.read_text().endswith(" (deleted)\n")
    disk.remove()
    assert traces(tmp_path / "lab") == []
    assert not os.path.ismount(tmp_path / "mnt")


def test_a_lab_in_use_is_removed_without_waiting_for_its_caps(lab, tmp_path):
    disk = lab(caps=Caps(bytes_per_s=1e5))
    disk.cap(on=False)
    put_to_use(disk.device, tmp_path / "mnt")
    (tmp_path / "mnt" / "file").write_bytes(b"x" * 30 * MIB)
    disk.cap(on=True)
    began = time.monotonic()
    disk.remove()
    assert time.monotonic() - began < 120  # at its rate it would be 300
    assert traces(tmp_path / "lab") == []


def test_what_is_still_in_use_is_named_and_removed_later(lab, tmp_path):
    disk = lab()
    queue = Path("/sys/block", disk.name, "queue/nomerges")
    before = disk.state.loop.queue[queue.name]
    queue.write_text(f"{(int(before) + 1) % 3}\n")  # as a treatment of the lab's does
    with Path(disk.device).open("rb"):
        with pytest.raises(HostError, match=disk.device):
            disk.remove()
        assert [s.phase for s in listing(HOST)] == ["removing"]
    disk.remove()
    assert traces(tmp_path / "lab") == []
    assert listing(HOST) == ()
    assert queue.read_text().strip() == before  # the kernel had freed it by then


def test_a_daemon_unmounts_when_terminated(lab, tmp_path):
    disk = lab()
    run("losetup", "--detach", disk.device)
    os.kill(disk.state.daemon.pid, signal.SIGTERM)
    assert within(60, lambda: not alive(HOST, disk.state.daemon))
    assert not os.path.ismount(tmp_path / "lab" / "fuse")
    assert within(60, lambda: disk.running.returncode() == 0)  # its threads end one by one


OWNER = """
import sys, time
from contextlib import suppress
from pathlib import Path
from mydyno.host import Local
from mydyno.lab import LabSpec, Stripe, create
spec = LabSpec(Path(sys.argv[1]).name, int(sys.argv[2]), stripe=Stripe(int(sys.argv[3]), 65536))
disk = create(Local(), spec, Path(sys.argv[1]), keep=len(sys.argv) > 4)
if len(sys.argv) > 4:
    disk.freeze()
print(disk.device, flush=True)
time.sleep(600)
"""


def killed_owner(home, *more, disks=1, before=lambda device: None):
    """Let another process make a lab, do something with it, and kill that process."""
    script = [sys.executable, "-c", OWNER, str(home), str(SIZE), str(disks), *more]
    with subprocess.Popen(script, stdout=subprocess.PIPE) as owner:
        device = owner.stdout.readline().decode().strip()
        before(device)
        owner.kill()
    return device


@pytest.mark.parametrize("disks", [1, 4])
def test_what_a_killed_owner_left_is_swept(tmp_path, disks):
    target = tmp_path / "mnt"
    home = tmp_path / "lab"
    killed_owner(home, disks=disks, before=lambda device: put_to_use(device, target))
    assert traces(home)
    lines = sweep(HOST)
    assert len(lines) == 1
    assert "leftover" in lines[0]
    assert traces(home) == []
    assert not os.path.ismount(target)
    assert listing(HOST) == sweep(HOST) == ()


def test_a_lab_killed_at_any_moment_of_its_making_is_swept(tmp_path):
    """Ten owners, each killed a little later than the one before."""
    home = tmp_path / "lab"
    script = [sys.executable, "-c", OWNER, str(home), str(SIZE), "4"]
    for number in range(10):
        with subprocess.Popen(script, stdout=subprocess.DEVNULL) as owner:
            within(20, lambda: listing(HOST) != ())
            time.sleep(0.03 * number)
            owner.kill()
        sweep(HOST)
        assert within(60, lambda: traces(home) == []), traces(home)
        assert listing(HOST) == ()


def backing_of(device):
    """Return the file of a loop device; a free one may be another worker's by now."""
    with suppress(OSError):
        return Path(f"/sys/block/{Path(device).name}/loop/backing_file").read_text()
    return ""


def test_its_daemon_ends_with_its_owner(tmp_path):
    home = tmp_path / "lab"
    device = killed_owner(home)
    state = listing(HOST)[0]
    assert within(60, lambda: not alive(HOST, state.daemon))
    sweep(HOST)
    assert traces(home) == []
    assert str(home) not in backing_of(device)


@pytest.mark.parametrize("disks", [1, 3])
def test_a_retained_base_is_used_again_by_who_resumes(tmp_path, lab, disks):
    home = tmp_path / "lab"

    def fill(device):
        run("dd", "if=/dev/zero", f"of={device}", "bs=1M", "count=1", "oflag=direct")

    killed_owner(home, "keep", disks=disks, before=fill)
    sweep(HOST)
    assert listing(HOST)[0].phase == "kept"
    bases = {"base.img", "base-1.img", "base-2.img"} if disks > 1 else {"base.img"}
    assert {p.name for p in home.iterdir()} == bases | {"golden.json"}
    disk = lab(stripe=Stripe(disks, 65536))
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


def test_a_base_of_another_stripe_is_not_used(tmp_path, lab):
    disk = lab(stripe=Stripe(2, 65536))
    disk.freeze()
    disk.remove(keep_base=True)
    assert not lab(stripe=Stripe(3, 65536)).frozen


def test_a_lab_mounted_in_another_namespace_is_reported_and_the_others_are_removed(tmp_path):
    """A container that was made while the lab was mounted keeps a copy of the mount."""
    target, other = tmp_path / "mnt", tmp_path / "other"
    holders = []

    def put_to_use_twice(device):
        put_to_use(device, target)
        argv = ["unshare", "--mount", "--propagation", "private", "sleep", "60"]
        holders.append(subprocess.Popen(argv))
        mounts = Path(f"/proc/{holders[0].pid}/ns/mnt")
        assert within(5, lambda: mounts.readlink() != Path("/proc/self/ns/mnt").readlink())

    device = killed_owner(tmp_path / "lab", before=put_to_use_twice)
    killed_owner(other)
    try:
        with pytest.raises(InUseError) as error:
            sweep(HOST)
        assert f"lab lab: {device} is mounted in another mount namespace" in str(error.value)
        assert f"--target {holders[0].pid} --mount umount {device}`" in str(error.value)
        assert "lab other: leftover; removed" in str(error.value)
        assert traces(other) == []
        assert not os.path.ismount(target)
    finally:
        holders[0].kill()
        holders[0].wait()
    assert within(60, lambda: str(tmp_path) not in backing_of(device))
    sweep(HOST)
    assert listing(HOST) == ()


@pytest.mark.parametrize("disks", [1, 4])
@pytest.mark.parametrize("phase", ["starting", "attaching", "removing"])
def test_a_lab_cut_short_in_any_phase_is_swept(tmp_path, phase, disks):
    """The record as it was when its owner died: the daemon's id may not have been written."""
    home = tmp_path / "lab"
    killed_owner(home, disks=disks)
    record = state_folder("labs") / "lab.json"
    words = json.loads(record.read_text())
    words["lab"] |= {"phase": phase, "loop": {"device": "", "diskseq": "", "queue": {}}}
    words["lab"] |= {"daemon": None} if phase == "starting" else {}
    record.write_text(json.dumps(words))
    sweep(HOST)
    assert within(60, lambda: traces(home) == [])
    assert listing(HOST) == ()


@pytest.mark.alone
def test_a_loop_device_serves_its_next_user_as_if_no_lab_had_been(tmp_path):
    """A device that never had a file shows limits that are bans once they are written there."""
    control = os.open("/dev/loop-control", os.O_RDWR)

    def queue_of_next_user(number):
        with blank(tmp_path) as device:
            assert device == f"/dev/loop{number}"
            files = Path("/sys/block", Path(device).name, "queue").glob("*")
            return {
                f.name: f.read_text() for f in files if f.is_file() and f.stat().st_mode & 0o400
            }

    try:
        number = fcntl.ioctl(control, _GET_FREE)
        found = []
        for lab in (False, True):
            once_free(lambda: fcntl.ioctl(control, _REMOVE, number))
            fcntl.ioctl(control, _ADD, number)
            if lab:
                with lab_maker(tmp_path) as make:
                    assert make().device == f"/dev/loop{number}"
            found.append(queue_of_next_user(number))
    finally:
        os.close(control)
    assert found[0] == found[1]
    assert found[0]["write_cache"] == "write back\n"
