"""A device that holds anything is refused, with the reason; only an empty one is formatted."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from integration.device_steps import (
    CRAFTED,
    IMAGES,
    MADE,
    MIB,
    SIZE,
    STDIN,
    attach,
    blank,
    run,
    write,
)
from mydyno.host import Local
from mydyno.journal.records import MemoryRecords
from mydyno.model import HostError, RefusedError
from mydyno.snapshot.device import RealDevice, holds, read_lsblk, release, require_empty

pytestmark = pytest.mark.root
HOST = Local()


@pytest.fixture
def device(tmp_path):
    with blank(tmp_path) as device:
        yield device


def needs(tool):
    if shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
        pytest.skip(f"{tool} is not in this system's archive")


def head(device):
    with Path(device).open("rb") as file:
        return file.read(2 * MIB)


def refused(device, kind):
    """It is refused by name, and not a byte of it was changed by asking."""
    before = head(device)
    with pytest.raises(RefusedError, match=r"is not empty: .*\b" + kind) as error:
        require_empty(HOST, device)
    assert "Nothing was touched" in str(error.value)
    assert head(device) == before


def test_a_blank_device_is_empty(device):
    assert holds(HOST, device) == ()
    assert holds(HOST, device) == ()  # asking has not changed that


@pytest.mark.parametrize("kind", MADE)
def test_what_tools_make_is_refused(device, kind):
    needs(MADE[kind][0])
    run(*(word.format(device) for word in MADE[kind]), stdin=STDIN.get(kind, b""))
    refused(device, kind)


@pytest.mark.parametrize("kind", IMAGES)
def test_images_are_refused(device, kind, tmp_path):
    needs(IMAGES[kind][0])
    folder, image = tmp_path / "content", tmp_path / "image"
    folder.mkdir()
    (folder / "file").write_bytes(b"x" * 10_000)
    run(*(word.format(folder=folder, image=image) for word in IMAGES[kind]))
    write(device, 0, image.read_bytes())
    refused(device, kind)


@pytest.mark.parametrize("kind", CRAFTED)
def test_a_device_with_content_that_only_its_layout_shows_is_refused(device, kind):
    write(device, *CRAFTED[kind])
    refused(device, kind)


def test_a_backup_table_at_the_end_is_refused(device):
    needs("sfdisk")
    run("sfdisk", "--quiet", "--no-reread", "--label", "gpt", device, stdin=b",200M\n")
    write(device, 0, bytes(MIB))
    refused(device, "(gpt|zeroes)")


@pytest.mark.parametrize("at", [0, MIB - 512, SIZE - MIB, SIZE - 1])
def test_data_without_a_signature_is_refused(device, at):
    write(device, at, b"\x01")
    refused(device, "MiB is not all zeroes")


def test_a_device_in_use_is_refused(device, tmp_path):
    held = os.open(device, os.O_RDWR | os.O_EXCL)
    try:
        assert "exclusively" in " ".join(holds(HOST, device))
    finally:
        os.close(held)
    assert holds(HOST, device) == ()
    run("mkfs.ext4", "-q", device)
    run("mount", device, tmp_path)
    try:
        contents = " ".join(holds(HOST, device))
    finally:
        run("umount", tmp_path)
    assert f"mounted on {tmp_path}" in contents
    assert "exclusively" in contents


def test_what_is_no_writable_block_device_is_refused(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(MIB))
    for path in (file, tmp_path, tmp_path / "missing"):
        assert holds(HOST, str(path)) == ("it is no block device",)
    with blank(tmp_path, "--read-only") as device:
        assert holds(HOST, device)


def test_a_symbolic_link_is_followed(device, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(device)
    assert holds(HOST, str(link)) == ()
    run("mkswap", device)
    refused(str(link), "swap")


def test_a_question_that_cannot_be_asked_speaks_against_it(device, monkeypatch):
    class Deaf(Local):
        def run(self, action, *, timeout_s=60.0):
            if action.argv[0] == "wipefs":
                return super().run(type(action)(("false",)), timeout_s=timeout_s)
            return super().run(action, timeout_s=timeout_s)

    assert "wipefs" in " ".join(holds(Deaf(), device))


LSBLK = b"""{"blockdevices": [{"path": "/dev/sdb", "type": "disk", "fstype": null, "pttype": "gpt",
"mountpoints": [null], "ro": false, "size": 1073741824, "children": [
{"path": "/dev/sdb1", "type": "part", "fstype": "xfs", "mountpoints": ["/srv"], "size": 1}]}]}"""


def test_partitions_and_users_are_read_from_lsblk():
    assert read_lsblk(LSBLK) == ["it carries /dev/sdb1 (part)", "lsblk finds gpt"]
    swap = LSBLK.replace(b"[null]", b'["[SWAP]"]')
    assert "it is in use at [SWAP]" in read_lsblk(swap)


@pytest.fixture
def records():
    return MemoryRecords()


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_device_is_formatted_once_and_left_as_empty_as_it_was(device, tmp_path, records, kind):
    made = RealDevice(HOST, device, tmp_path / "mnt", records)
    made.open(kind, "")
    (tmp_path / "mnt" / "file").write_bytes(os.urandom(3 * MIB))
    made.mount("noatime")
    options = run("findmnt", "--noheadings", "--output", "OPTIONS", tmp_path / "mnt")
    assert b"noatime" in options
    made.close(keep=True)
    again = RealDevice(HOST, device, tmp_path / "mnt", records)
    again.open(kind, "")
    assert (tmp_path / "mnt" / "file").stat().st_size == 3 * MIB
    with pytest.raises(HostError, match="one filesystem a campaign"):
        again.open("ext4", "-m 0")
    again.close(keep=False)
    assert holds(HOST, device) == ()
    assert not os.path.ismount(tmp_path / "mnt")


INTERRUPTED = """
import os, signal, sys
from pathlib import Path
from mydyno.host import Local
from mydyno.host.local import install
from mydyno.journal.records import MemoryRecords
from mydyno.snapshot.device import RealDevice, release

class Hasty(Local):
    def run(self, action, **more):
        if action.argv[0] == "mkfs.ext4":
            os.kill(os.getpid(), signal.SIGINT)
        return super().run(action, **more)

install()
records = MemoryRecords()
try:
    RealDevice(Hasty(), sys.argv[1], Path(sys.argv[2]), records).open("ext4", "")
except KeyboardInterrupt:
    print(release(Local(), records))
"""


def test_an_interrupt_does_not_leave_half_a_filesystem(device, tmp_path):
    argv = (sys.executable, "-c", INTERRUPTED, device, tmp_path / "mnt")
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=60)
    assert done.stdout == f"(['ext4 on {device}'], [])\n"
    assert holds(HOST, device) == ()


@pytest.mark.parametrize("step", ["blkdiscard", "dd", "seek=131072", "seek=0"])
def test_a_device_that_is_being_wiped_is_known_again_after_an_end_at_any_step(
    device, tmp_path, records, step
):
    class Dying(Local):
        def run(self, action, *, timeout_s=60.0):
            if step in action.argv:
                raise OSError("power failure")
            return super().run(action, timeout_s=timeout_s)

    RealDevice(HOST, device, tmp_path / "mnt", records).open("ext4", "")
    (tmp_path / "mnt" / "file").write_bytes(os.urandom(3 * MIB))
    with pytest.raises(OSError, match="power failure"):
        release(Dying(), records)
    assert release(HOST, records) == ([f"ext4 on {device}"], [])
    assert holds(HOST, device) == ()


HALF = """
import os, sys, time
device = os.open(sys.argv[1], os.O_RDWR | os.O_EXCL)
made = os.pread(device, 1 << 20, 0)
os.pwrite(device, bytes(1 << 20), 0)
os.fsync(device)
print("half", flush=True)
time.sleep(2)
os.pwrite(device, made, 0)
os.fsync(device)
"""


def test_a_mkfs_that_outlives_a_kill_is_waited_for(device, tmp_path, records):
    """Until it ends there is no UUID to recognise its filesystem by."""
    RealDevice(HOST, device, tmp_path / "mnt", records).open("ext4", "")
    run("umount", tmp_path / "mnt")
    words = (sys.executable, "-c", HALF, device)
    with subprocess.Popen(words, stdout=subprocess.PIPE) as writing:
        assert writing.stdout.readline() == b"half\n"
        assert release(HOST, records) == ([f"ext4 on {device}"], [])
    assert holds(HOST, device) == ()


def test_what_may_be_half_of_a_filesystem_stays_recorded(device, tmp_path, records):
    RealDevice(HOST, device, tmp_path / "mnt", records).open("ext4", "")
    run("umount", tmp_path / "mnt")
    write(device, 0, b"\1" * MIB)
    for _ in range(2):
        done, (line,) = release(HOST, records)
        assert done == []
        assert "not wiped: it contains its first MiB" in line
    write(device, 0, b"\0" * SIZE)
    _, (line,) = release(HOST, records)
    assert "it contains nothing" in line
    assert release(HOST, records) == ([], [])


def test_what_became_someone_elses_is_never_wiped(device, tmp_path, records):
    made = RealDevice(HOST, device, tmp_path / "mnt", records)
    made.open("ext4", "")
    made.close(keep=True)
    run("mkfs.ext4", "-q", "-F", device)  # another uuid
    done, (line,) = release(HOST, records)
    assert done == []
    assert "not wiped: it contains UUID" in line
    refused(device, "ext4")
    assert release(HOST, records) == ([], [])
    with pytest.raises(RefusedError, match="ext4"):
        RealDevice(HOST, device, tmp_path / "mnt", records).open("ext4", "")


def test_what_somebody_else_mounted_at_our_place_is_left(device, tmp_path, records):
    RealDevice(HOST, device, tmp_path / "mnt", records).open("ext4", "")
    run("mount", "-t", "tmpfs", "theirs", tmp_path / "mnt")
    try:
        done, (line,) = release(HOST, records)
        assert done == []
        assert "theirs (tmpfs" in line
        assert os.path.ismount(tmp_path / "mnt")
    finally:
        run("umount", tmp_path / "mnt")
    assert release(HOST, records) == ([f"ext4 on {device}"], [])


@pytest.mark.alone
def test_another_disk_under_the_same_name_is_not_wiped(device, tmp_path, records):
    RealDevice(HOST, device, tmp_path / "mnt", records).open("ext4", "")
    run("umount", tmp_path / "mnt")
    image = run("losetup", "--noheadings", "--output", "BACK-FILE", device).decode().strip()
    run("losetup", "--detach", device)
    attach(device, image)  # the same bytes, and yet not the disk that was there
    done, (line,) = release(HOST, records)
    assert done == []
    assert "another disk now (diskseq" in line
    refused(device, "ext4")


def test_a_killed_campaign_is_released(device, tmp_path, records):
    RealDevice(HOST, device, tmp_path / "mnt", records).open("xfs", "")
    assert release(HOST, records) == ([f"xfs on {device}"], [])
    assert release(HOST, records) == ([], [])
    assert holds(HOST, device) == ()


@pytest.mark.parametrize("at", [SIZE // 4 - MIB, SIZE // 2 + 5 * MIB, SIZE - 3 * MIB])
def test_data_in_the_middle_is_found_where_it_begins(device, at):
    write(device, at, b"\0" * 4095 + b"\1" + os.urandom(MIB - 4096))
    (line,) = holds(HOST, device)
    found = int(re.search(r"byte (\d+) is not zero", line)[1])
    assert at <= found < at + MIB


SPEC = """
[campaign]
name = "real"
[stack]
server = "none"
device = "{device}"
[treatments.plain]
[treatments.noatime]
"fs.mount" = "noatime"
[workloads.read]
tool = "fio"
options = {{ rw = "randread", size = "32M" }}
[protocol]
warmup_s = 1
window_s = 1
blocks = 1
"""


def test_a_campaign_on_a_device_needs_the_word_and_leaves_it_empty(device, tmp_path):
    spec = tmp_path / "real.toml"
    spec.write_text(SPEC.format(device=device))
    command = [
        str(Path(sys.executable).with_name("mydyno")),
        "run",
        str(spec),
        "-o",
        str(tmp_path / "out"),
    ]

    def go(*more):
        return subprocess.run([*command, *more], capture_output=True, check=False)

    done = go()
    assert done.returncode == 4
    assert f"--allow reformat:{device}" in done.stderr.decode()
    write(device, 4096, b"precious")
    done = go("--allow", f"reformat:{device}")
    assert done.returncode == 4, done.stderr
    assert "not all zeroes" in done.stderr.decode()
    write(device, 4096, bytes(8))
    done = go("--allow", f"reformat:{device}")
    assert done.returncode == 0, done.stderr.decode()
    assert holds(HOST, device) == ()
