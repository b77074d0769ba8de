"""What mydyno removes of disks is its own: known by its record, and by what the host shows.

Attacks and faults here use commands and files only.
"""

import json
import os
import shutil
import stat
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from command_line import mydyno
from integration.device_steps import attach

pytestmark = [pytest.mark.root, pytest.mark.skipif(os.geteuid() != 0, reason="needs root")]

RECORDS = Path("/var/lib/mydyno/labs")
NAME = f"harm-{os.getpid()}"


def run(*argv):
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def home():
    """A folder for labs that root alone can change, and nothing left of them at the end."""
    folder = Path(tempfile.mkdtemp(prefix="mydyno-harm-", dir="/var/tmp"))
    try:
        yield folder
    finally:
        mydyno("lab", "down", NAME)
        shutil.rmtree(folder)
        (RECORDS / f"{NAME}.json").unlink(missing_ok=True)


def up(home, *more):
    return mydyno("lab", "up", NAME, "--home", home, "--size", "320M", *more)


def down():
    return mydyno("lab", "down", NAME)


@contextmanager
def loop(image, size=64 << 20):
    with image.open("wb") as file:
        file.truncate(size)
    device = run("losetup", "--find", "--show", image)
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=False, capture_output=True)


def test_a_lab_comes_and_goes_and_nobody_else_can_read_it(home):
    made = up(home)
    assert made.returncode == 0, made.stderr
    folders = (home / NAME, home / NAME / "fuse", RECORDS)
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700] * 3
    files = [path for path in (home / NAME).iterdir() if path.is_file()]
    assert home / NAME / "base.img" in files
    for path in (*files, RECORDS / f"{NAME}.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    assert NAME in mydyno("lab", "list").stdout
    done = down()
    assert done.returncode == 0, done.stderr
    assert list(home.iterdir()) == []
    assert not (RECORDS / f"{NAME}.json").exists()


@pytest.mark.parametrize("kind", ["folder", "file", "link"])
def test_what_has_the_labs_name_already_is_refused_and_stays(home, kind):
    place, theirs = home / NAME, home / "theirs"
    if kind == "folder":
        place.mkdir()
        (place / "base.img").write_text("precious")
    elif kind == "file":
        place.write_text("precious")
    else:
        theirs.mkdir()
        (theirs / "base.img").write_text("precious")
        place.symlink_to(theirs)
    before = sorted((str(p), p.is_symlink()) for p in home.rglob("*"))
    made = up(home)
    assert made.returncode == 4, made.stderr
    assert "Traceback" not in made.stderr
    assert down().returncode != 0
    assert sorted((str(p), p.is_symlink()) for p in home.rglob("*")) == before
    assert all(p.read_text() == "precious" for p in home.rglob("base.img"))


def test_a_lab_goes_where_a_link_of_its_name_leads_and_the_link_stays(home):
    """The name means a place where nothing is: nothing of anybody's can be lost there."""
    place, there = home / NAME, home / "there"
    place.symlink_to(there)
    made = up(home)
    assert made.returncode == 0, made.stderr
    assert (there / "base.img").exists()
    assert down().returncode == 0
    assert place.readlink() == there
    assert list(home.iterdir()) == [place]  # where it leads there is nothing again


@pytest.mark.parametrize("name", ["../up", "a/b", "/etc", "..", ""])
def test_a_name_is_one_part_of_a_path(home, name):
    for argv in (("up", name, "--home", home), ("down", name)):
        done = mydyno("lab", *argv)
        assert done.returncode != 0
        assert "Traceback" not in done.stderr
    assert list(home.iterdir()) == []


def test_another_folder_in_the_labs_place_is_left(home):
    assert up(home).returncode == 0
    pid = json.loads((RECORDS / f"{NAME}.json").read_text())["lab"]["daemon"]["pid"]
    (home / NAME).rename(home / "moved")
    (home / NAME).mkdir(mode=0o700)
    (home / NAME / "base.img").write_text("precious")
    try:
        done = down()
        assert done.returncode != 0
        assert "is not the folder that was made there" in done.stderr
        assert (home / NAME / "base.img").read_text() == "precious"
        assert not lives(pid)  # its own steps do not wait for the others
    finally:
        shutil.rmtree(home / NAME)
        (home / "moved").rename(home / NAME)
    done = down()
    assert done.returncode == 0, done.stderr
    assert list(home.iterdir()) == []


def lives(pid):
    """Return whether a process runs: one that has ended may wait for its parent."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_what_somebody_else_mounted_over_the_labs_place_is_left(home):
    assert up(home).returncode == 0
    place = home / NAME / "fuse"
    run("mount", "-t", "tmpfs", "theirs", place)
    (place / "file").write_text("precious")
    try:
        done = down()
        assert done.returncode != 0
        assert f"{place}: left mounted: theirs (tmpfs" in done.stderr
        assert (place / "file").read_text() == "precious"
    finally:
        run("umount", place)
    assert down().returncode == 0
    assert list(home.iterdir()) == []


@pytest.mark.alone
def test_a_loop_device_that_became_somebody_elses_is_left(home):
    """Its number is taken by another file after ours was detached."""
    device = up(home).stdout.strip()
    run("losetup", "--detach", device)
    image = home / "theirs.img"
    with image.open("wb") as file:
        file.truncate(64 << 20)
    attach(device, image)
    try:
        queue = Path(f"/sys/block/{device.rpartition('/')[2]}/queue")
        (queue / "read_ahead_kb").write_text("192")
        assert down().returncode == 0
        assert run("losetup", "--noheadings", "--output", "BACK-FILE", device) == str(image)
        assert (queue / "read_ahead_kb").read_text() == "192\n"
    finally:
        run("losetup", "--detach", device)


@pytest.mark.parametrize(
    ("facts", "value"),
    [("started", 1), ("boot", "another"), ("program", "/usr/bin/another")],
)
def test_a_process_that_is_not_the_recorded_one_is_left(home, facts, value):
    """The record of a lab whose daemon's id now belongs to a program of somebody else."""
    assert up(home).returncode == 0
    record = RECORDS / f"{NAME}.json"
    words = json.loads(record.read_text())
    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            stat_ = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()
            sleeping = {
                "pid": other.pid,
                "started": int(stat_[19]),
                "program": str(Path(f"/proc/{other.pid}/exe").readlink()),
                "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
            }
            words["lab"]["daemon"] = {**sleeping, facts: value}
            record.write_text(json.dumps(words))
            down()
            assert other.poll() is None
        finally:
            other.kill()


def test_after_a_boot_only_files_are_removed(home):
    """Another boot had the same numbers for other things: none of them is touched."""
    device = up(home).stdout.strip()
    record = RECORDS / f"{NAME}.json"
    words = json.loads(record.read_text())
    true = record.read_text()
    words["lab"]["boot"] = words["lab"]["daemon"]["boot"] = "another"
    record.write_text(json.dumps(words))
    done = down()
    pid = words["lab"]["daemon"]["pid"]
    assert "process" not in done.stdout
    assert lives(pid)
    assert run("losetup", "--noheadings", "--output", "BACK-FILE", device)
    assert not (home / NAME / "base.img").exists()
    record.write_text(true)
    assert down().returncode == 0
    assert list(home.iterdir()) == []


@pytest.mark.alone
def test_the_queue_of_the_loop_device_is_as_it_was(home):
    """A lab sets the scheduler, which resets the length of the queue and has its own tunables."""
    with loop(home / "first") as device:
        queue = Path(f"/sys/block/{device.rpartition('/')[2]}/queue")
        first = shown(queue)
        (queue / "scheduler").write_text("mq-deadline")
        (queue / "nr_requests").write_text("77")
        (queue / "iosched/fifo_batch").write_text("3")
        (queue / "read_ahead_kb").write_text("192")
    (home / "first").unlink()
    before = shown(queue)
    try:
        assert up(home).stdout.strip() == device
        assert down().returncode == 0
        assert shown(queue) == before
    finally:
        scheduler = first["scheduler"].partition("[")[2].partition("]")[0] or "none"
        (queue / "scheduler").write_text(scheduler)
        for name in ("nr_requests", "read_ahead_kb"):
            (queue / name).write_text(first[name])


def shown(queue):
    """Return what can be set of a queue."""
    found = {}
    for path in sorted(queue.rglob("*")):
        if path.is_file() and path.stat().st_mode & stat.S_IWUSR:
            try:
                found[str(path.relative_to(queue))] = path.read_text().strip()
            except OSError:
                continue
    return found


def test_nothing_is_done_by_a_record_of_an_older_place(home):
    """Whoever wrote it could have named any process and any folder."""
    folder = Path("/run/mydyno/labs")
    there = folder.is_dir()
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / f"{NAME}.json"
    (home / "base.img").write_text("precious")
    with subprocess.Popen(["sleep", "600"]) as other:
        started = Path(f"/proc/{other.pid}/stat").read_text().rpartition(")")[2].split()[19]
        spec = {"lab": NAME, "size": 1 << 20}
        lab = {"spec": spec, "host": "localhost", "home": str(home), "phase": "removing"}
        lab["daemon"] = {"pid": other.pid, "started": int(started)}
        record.write_text(json.dumps({"lab": lab, "version": 2}))
        try:
            assert NAME not in mydyno("lab", "list").stdout
            assert down().returncode != 0
            assert other.poll() is None
            assert (home / "base.img").read_text() == "precious"
        finally:
            other.kill()
            record.unlink()
            if not there:
                folder.rmdir()


SPEC = """
[campaign]
name = "harm"
[stack]
server = "none"
device = "{device}"
[treatments.plain]
[treatments.other]
"fs.mount" = "noatime"
[workloads.read]
tool = "fio"
options = {{ rw = "randread", size = "8M" }}
[protocol]
warmup_s = 1
window_s = 1
blocks = 1
"""


@pytest.mark.parametrize("at", [5 << 20, 200 << 20, (511 << 20) - 4096])
def test_a_device_with_data_anywhere_is_refused(home, at):
    """No signature, and zeroes at both ends: a quarter of the device holds somebody's bytes."""
    image = home / "image"
    with loop(image, 512 << 20) as device:
        data = os.urandom(1 << 20)
        with Path(device).open("r+b", buffering=0) as file:
            file.seek(at - at % 4096 if at < 510 << 20 else 510 << 20)
            file.write(data)
        before = image.read_bytes()
        spec = home / "spec.toml"
        spec.write_text(SPEC.format(device=device))
        done = mydyno("run", spec, "-o", home / "out", "--allow", f"reformat:{device}")
        assert done.returncode == 4, done.stderr
        assert "it holds data: byte" in done.stderr
        assert image.read_bytes() == before


def test_a_note_in_the_work_folder_erases_nothing(home):
    """`device.json` there named what `rollback` would wipe; whoever could write it could choose."""
    with loop(home / "image", 512 << 20) as device, loop(home / "theirs", 64 << 20) as theirs:
        run("mkfs.ext4", "-q", theirs)
        uuid = run("blkid", "--probe", "-s", "UUID", "-o", "value", theirs)
        spec, out = home / "spec.toml", home / "out"
        spec.write_text(SPEC.format(device=device))
        done = mydyno("run", spec, "-o", out, "--allow", f"reformat:{device}")
        assert done.returncode == 0, done.stderr
        (out / "work").mkdir(exist_ok=True)
        note = {"device": theirs, "uuid": uuid, "kind": "ext4", "options": ""}
        (out / "work" / "device.json").write_text(json.dumps(note))
        mydyno("rollback", out)
        assert run("blkid", "--probe", "-s", "UUID", "-o", "value", theirs) == uuid
