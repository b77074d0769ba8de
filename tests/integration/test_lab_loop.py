"""Lab disks on real loop devices: bytes, caps, going back, and leaving nothing behind."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from mydyno.host import Local
from mydyno.lab import Caps, LabSpec, Latency, attach, available, create, down, listing, sweep
from mydyno.lab.process import alive
from mydyno.model import HostError, RefusedError, SpecError

pytestmark = pytest.mark.root
MIB = 1 << 20
SIZE = 320 * MIB  # the least that mkfs.xfs accepts is 300 MiB
HOST = Local()
SMALL_BUCKET = Caps(iops=1000, burst_iops=3000, burst_s=1.5)


@pytest.fixture(autouse=True)
def run_dir(tmp_path, monkeypatch):
    monkeypatch.setenv("MYDYNO_RUN_DIR", str(tmp_path / "run"))
    return tmp_path / "run"


@pytest.fixture
def lab(tmp_path):
    made = []

    def make(name="lab", size=SIZE, **more):
        made.append(create(HOST, LabSpec(name, size, **more), tmp_path / name))
        return made[-1]

    yield make
    for device in made:
        device.remove()


def run(*argv, check=True):
    return subprocess.run([str(a) for a in argv], capture_output=True, check=check).stdout


def fio(device, rw, *more):
    fixed = ("--name=t", f"--filename={device}", "--direct=1", "--ioengine=libaio")
    out = run("fio", *fixed, f"--rw={rw}", "--output-format=json", *more)
    job = json.loads(out[out.index(b"{") :])["jobs"][0]
    assert job["error"] == 0
    return job["write" if "write" in rw else "read"]


def read_iops(device, seconds, ramp=1, block="16k"):
    shape = (f"--bs={block}", "--iodepth=32", "--time_based", f"--ramp_time={ramp}")
    done = fio(device, "randread", *shape, f"--runtime={seconds}")
    # With a ramp, what is in flight at its end is not counted, but waiting for the last is timed.
    waited_s = done["lat_ns"]["mean"] / 1e9 if ramp else 0
    return done["total_ios"] / (done["runtime"] / 1e3 - waited_s)


def capped_iops(device, cap, seconds, **more):
    """The best of three windows: a busy machine can only take away, a cap must hold in each."""
    best = 0.0
    for _ in range(3):
        best = max(best, read_iops(device, seconds, **more))
        if best > 0.98 * cap:
            break
    return best


def digest(device):
    """The whole disk past the page cache, so that the disk itself is read."""
    with subprocess.Popen(
        ["dd", f"if={device}", "bs=4M", "iflag=direct", "status=none"], stdout=subprocess.PIPE
    ) as reader:
        return hashlib.file_digest(reader.stdout, "sha256").hexdigest()


def traces(home):
    """All that could be left of a lab: loop devices, mounts, processes, files."""
    home = str(home)
    found = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if home in line]
    found += [
        f for f in run("losetup", "--list", "--noheadings").decode().splitlines() if home in f
    ]
    for cmdline in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = cmdline.read_bytes()
            found += [str(cmdline)] if home.encode() in words and b"mydyno-disk" in words else []
    return found + [str(path) for path in Path(home).glob("**/*")]


def within(seconds, question):
    until = time.monotonic() + seconds
    while not question() and time.monotonic() < until:
        time.sleep(0.02)
    return question()


def test_a_lab_can_be_made_here():
    assert available(HOST) == ""


def verify(device):
    """Write mixed blocks at random places, then read each again and compare its checksum."""
    mixed = "--bssplit=4k/40:16k/30:64k/20:256k/5:1m/3:2m/2"
    checked = ("--verify=crc32c", "--verify_fatal=1", "--iodepth=32", "--size=192m")
    fio(device, "randwrite", mixed, *checked, "--do_verify=1", "--randrepeat=0")


def test_every_byte_written_is_read_again(lab):
    disk = lab(size=256 * MIB)
    verify(disk.device)
    disk.freeze()
    before = digest(disk.device)
    verify(disk.device)  # over the base
    disk.drop()
    assert digest(disk.device) == before
    verify(disk.device)  # over the base, after a drop
    tiny = ("--bsrange=512-16k", "--blockalign=512", "--verify=crc32c", "--verify_fatal=1")
    disk.drop()  # sectors: chunks that are written in part
    fio(disk.device, "randwrite", *tiny, "--iodepth=32", "--size=32m", "--do_verify=1")
    assert disk.stats()["overlay_chunks"] > 0


def test_an_empty_p15_gives_1100_and_a_full_one_3500(lab):
    disk = lab(disk_class="azure-p15")
    disk.credits("empty")
    assert capped_iops(disk.device, 1100, 5) == pytest.approx(1100, rel=0.02)
    disk.credits("full")
    assert capped_iops(disk.device, 3500, 3) == pytest.approx(3500, rel=0.02)


def test_a_burst_ends_with_its_credits_and_idling_earns_them(lab):
    disk = lab(caps=SMALL_BUCKET)
    disk.credits("full")
    assert read_iops(disk.device, 1, ramp=0) > 2500
    assert capped_iops(disk.device, 1000, 2) == pytest.approx(1000, rel=0.02)
    disk.credits("empty")
    time.sleep(0.5)
    assert disk.stats()["credits"]["iops"] == pytest.approx(500, rel=0.1)
    disk.cap(on=False)
    assert read_iops(disk.device, 1) > 5000
    assert not disk.stats()["capped"]


def test_a_large_request_counts_per_256_kib_and_bytes_are_capped(lab):
    disk = lab(caps=Caps(iops=400))
    # Not larger: the kernel itself may cut what has more than 128 pages, and not in the middle.
    assert capped_iops(disk.device, 200, 1, block="384k") == pytest.approx(200, rel=0.05)
    slow = lab("slow", caps=Caps(bytes_per_s=52428800))
    assert capped_iops(slow.device, 200, 1, block="256k") == pytest.approx(200, rel=0.05)


def test_measuring_shows_the_caps_and_leaves_the_credits_as_they_were(lab):
    disk = lab(caps=Caps(iops=2000, bytes_per_s=100e6, burst_iops=4000))
    measured = disk.measure(1, write=True)
    assert measured.read_iops == pytest.approx(2000, rel=0.05)
    assert measured.write_iops == pytest.approx(2000, rel=0.05)
    assert measured.read_bytes_per_s == pytest.approx(100e6, rel=0.05)
    assert disk.stats()["credits"]["iops"] < 200
    with pytest.raises(RefusedError, match="holds data"):
        disk.measure(1, write=True)


@pytest.mark.parametrize("kind", ["ext4", "xfs"])
def test_dropping_gives_the_golden_bytes_in_no_time(lab, tmp_path, kind):
    disk = lab(disk_class="azure-p80", credits="full")
    disk.cap(on=False)
    target = tmp_path / "mnt"
    target.mkdir()
    run(f"mkfs.{kind}", "-q", disk.device)
    run("mount", disk.device, target)
    (target / "golden").write_bytes(b"as it was" * 100_000)
    with pytest.raises(RefusedError, match="unmount"):
        disk.freeze()
    run("umount", target)
    disk.freeze()
    golden = digest(disk.device)
    for _ in range(2):
        run("mount", disk.device, target)
        assert (target / "golden").read_bytes() == b"as it was" * 100_000
        assert not (target / "more").exists()
        (target / "golden").write_bytes(b"changed")
        (target / "more").write_bytes(os.urandom(40 * MIB))
        with pytest.raises(RefusedError, match="unmount"):
            disk.drop()
        run("umount", target)
        assert digest(disk.device) != golden
        began = time.monotonic()
        disk.drop()
        assert time.monotonic() - began < 0.2
        assert digest(disk.device) == golden


def test_added_latency_is_added(lab):
    disk = lab(latency=Latency(read_s=0.002, flush_s=0.005))
    one = ("--bs=4k", "--iodepth=1", "--time_based", "--runtime=1")
    median = fio(disk.device, "randread", *one)["clat_ns"]["percentile"]["50.000000"]
    assert 2.0e6 < median < 2.4e6
    began = time.monotonic()
    for _ in range(20):
        run("dd", "if=/dev/zero", f"of={disk.device}", "bs=4k", "count=1", "conv=fsync")
    assert time.monotonic() - began > 0.1


def test_orders_that_make_no_sense_say_why(lab):
    disk = lab(caps=SMALL_BUCKET)
    with pytest.raises(HostError, match="nothing is frozen"):
        disk.drop()
    with pytest.raises(SpecError):
        disk.credits(2)
    disk.freeze()
    with pytest.raises(HostError, match="frozen already"):
        disk.freeze()


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


def test_without_the_binary_the_reason_is_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "make setup" in available(HOST)
