"""The outputs of losetup, mountinfo and fio are read correctly."""

import json
from pathlib import Path

import pytest

from mydyno.host import Completed
from mydyno.host.processes import Mount, parse_mounts
from mydyno.lab.device import DiskCaps, parse
from mydyno.lab.teardown import parse_loops
from mydyno.model import DriftError
from mydyno.stack import converge_made

MOUNTINFO = rb"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 22 7:0 / /mnt/with\040space rw,noatime shared:3 master:1 - xfs /dev/loop0 rw,attr2
41 40 7:0 /sub /mnt/sub rw - xfs /dev/loop0 rw
42 22 0:44 / /lab/fuse rw,nosuid - fuse mydyno-disk rw,user_id=0
torn 22
"""
LOOPS = b"""{
   "loopdevices": [
      {"name":"/dev/loop1", "back-file":"/lab/fuse/disk"},
      {"name":"/dev/loop0", "back-file":null}
   ]
}
"""
FIO = b"""note: both iodepth >= 1 and synchronous I/O engine are selected
{"jobs": [{"read": {"total_ios": 201, "runtime": 1161, "lat_ns": {"mean": 160432128.0}},
           "write": {"total_ios": 0, "runtime": 0, "lat_ns": {"mean": 0.0}}}]}
"""


def test_mounts_are_read_in_order_with_their_names_unescaped():
    mounts = parse_mounts(MOUNTINFO)
    assert mounts[1] == Mount("/mnt/with space", "/dev/loop0", "7:0", "xfs")
    assert [m.target for m in mounts] == ["/", "/mnt/with space", "/mnt/sub", "/lab/fuse"]


@pytest.mark.parametrize("raw", [b"", b"\n", b"junk - junk\n", b"1 2 3 4 - a\n"])
def test_no_mount_is_made_up(raw):
    assert parse_mounts(raw) == ()


def test_loops_are_read_and_none_is_none():
    assert parse_loops(LOOPS) == (("/dev/loop1", "/lab/fuse/disk"), ("/dev/loop0", ""))
    assert parse_loops(b"") == ()


def test_fio_is_read_past_its_notes_without_the_wait_for_the_last_answers():
    assert parse(FIO, "randread") == pytest.approx(200.9, abs=0.1)
    assert parse(FIO, "randwrite") == 0


class Daemon:
    """A host with a lab disk's control file; a deaf one takes orders and does nothing."""

    name = "fake"

    def __init__(self, *, deaf=False):
        self.capped, self.deaf, self.orders = False, deaf, []

    def run(self, action, *, timeout_s=60.0):
        if action.argv == ("tee", "/lab/ctl"):
            self.orders.append(action.stdin)
            self.capped = self.capped if self.deaf else action.stdin == b"cap on\n"
        return Completed(action, 0, json.dumps({"capped": self.capped}).encode(), b"")


def test_the_caps_of_a_lab_disk_are_seen_in_force_before_a_load_begins():
    daemon, layer = Daemon(), DiskCaps(Path("/lab/ctl"))
    for wanted in ("on", "on", "off"):
        converge_made(daemon, layer, {"caps": wanted})
    assert daemon.orders == [b"cap on\n", b"cap off\n"]
    with pytest.raises(DriftError, match=r"disk\.caps is off, not on"):
        converge_made(Daemon(deaf=True), layer, {"caps": "on"})
