"""The block and filesystem layers: what they read, plan and refuse."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mydyno.model import Cost, SpecError
from mydyno.stack.block import Block
from mydyno.stack.fs import Fs, canonical, merged, missing, mkfs, mount

BLOCK = Block("loop7", owned=True)
FS = Fs("/mnt/x", "/dev/loop7")
# read on kernel 6.18, a loop device
RAW = b"""/sys/block/loop7/queue/nr_requests:128
/sys/block/loop7/queue/read_ahead_kb:128
/sys/block/loop7/queue/scheduler:none mq-deadline [kyber] bfq
/sys/block/loop7/queue/iosched/read_lat_nsec:2000000
/sys/block/loop7/queue/rq_affinity:1
"""


def now():
    return dict(BLOCK.observe().parse(RAW))


def test_the_queue_is_read():
    assert now() == {
        "nr_requests": "128",
        "read_ahead_kb": "128",
        "scheduler": "kyber",
        "scheduler.choices": "none mq-deadline kyber bfq",
        "iosched.read_lat_nsec": "2000000",
        "rq_affinity": "1",
        "@": "",
    }


def test_the_scheduler_comes_first_as_it_resets_the_rest():
    changes = BLOCK.plan(now(), {"nr_requests": "64", "scheduler": "none", "rq_affinity": "1"})
    assert [(c.key, c.before, c.after) for c in changes] == [
        ("scheduler", "kyber", "none"),
        ("nr_requests", "128", "64"),
    ]
    assert changes[0].action.argv == ("tee", "/sys/block/loop7/queue/scheduler")
    assert changes[0].action.stdin == b"none\n"


@given(st.dictionaries(st.sampled_from(["nr_requests", "read_ahead_kb"]), st.integers(1, 999)))
def test_a_setting_in_force_needs_no_change(values):
    want = {k: str(v) for k, v in values.items()}
    assert BLOCK.plan({**now(), **want}, want) == []


@pytest.mark.parametrize(
    ("want", "message"),
    [
        ({"scheduler": "noop"}, "noop is called none since Linux 5.0"),
        ({"scheduler": "cfq"}, "'cfq' is not one of none, mq-deadline, kyber, bfq; cfq is called"),
        ({"schedular": "none"}, "did you mean 'block.scheduler'?"),
        ({"wbt_lat_usec": "0"}, "this kernel does not show it"),
        ({"iosched.fifo_batch": "1"}, "the scheduler kyber has no such tunable"),
    ],
)
def test_what_the_disk_does_not_have_is_refused(want, message):
    with pytest.raises(SpecError) as error:
        BLOCK.plan(now(), want)
    assert message in str(error.value)


def test_a_mount_is_read_in_one_spelling():
    reply = {"filesystems": [{"fstype": "ext4", "options": "rw,relatime", "target": "/mnt/x"}]}
    found = FS.observe().parse(json.dumps(reply).encode())
    assert found == {"type": "ext4", "mount": "relatime,rw", "target": "/mnt/x", "@": ""}


def test_mount_options_are_a_set():
    at = {"type": "ext4", "mount": "noatime,rw", "target": "/mnt/x"}
    assert FS.plan(at, {"mount": "rw, noatime"}) == []
    change = FS.plan(at, {"mount": "noatime,lazytime"})[0]
    assert change.cost is Cost.REMOUNT
    assert change.action.argv[-2:] == ("remount,lazytime,noatime,rw", "/mnt/x")


@pytest.mark.parametrize(
    ("now", "want", "both"),
    [
        ("noatime,nosuid,rw", "relatime,rw", "nosuid,relatime,rw"),
        ("relatime,rw", "noatime", "noatime,rw"),
        ("commit=30,rw", "commit=5", "commit=5,rw"),
        ("discard,rw", "nodiscard,ro", "nodiscard,ro"),
        ("", "noatime", "noatime"),
    ],
)
def test_a_wanted_option_takes_the_place_of_its_contrary(now, want, both):
    assert merged(now, want) == both


@pytest.mark.parametrize(
    ("layer", "want", "message"),
    [
        (FS, {"type": "ntfs"}, "fs.type: 'ntfs' is not one of ext4, xfs, btrfs"),
        (FS, {"type": "xfs", "mount": "nobarrier"}, "removed from XFS in 4.19"),
        (FS, {"mount": "nobootwait"}, "with systemd the word is nofail"),
        (FS, {"chunk": "64"}, "known: fs.type, fs.mkfs, fs.mount"),
        (Fs("/srv", ""), {"type": "xfs"}, "set stack.device to a lab"),
        (FS, {"type": "xfs", "mkfs": "-l logdev=/dev/sdz"}, "fs.mkfs: 'logdev=/dev/sdz' names a"),
        (FS, {"type": "btrfs", "mkfs": "-d raid0 /dev/sdz"}, "fs.mkfs: '/dev/sdz' names a file or"),
    ],
)
def test_an_impossible_mount_is_refused(layer, want, message):
    with pytest.raises(SpecError) as error:
        layer.plan({"type": "ext4", "mount": "rw"}, want)
    assert message in str(error.value)


def test_commands():
    assert mkfs("xfs", "-m reflink=0", "/dev/loop7") == (
        *("mkfs.xfs", "-f", "-q", "-K", "-m", "reflink=0", "/dev/loop7"),
    )
    assert mount("ext4", "", "/dev/l", "/m") == ("mount", "-t", "ext4", "/dev/l", "/m")
    assert mount("ext4", "b, a,,a", "/dev/l", "/m")[3:5] == ("-o", "a,b")
    assert canonical(" b ,a,") == "a,b"
    assert missing("rw,noatime", "defaults,noatime,discard") == ["discard"]
