"""A data set on the disks of a machine is restored as it was frozen, on every kind of storage."""

from pathlib import Path

import pytest

from mydyno.host import ask
from mydyno.model import Action
from mydyno.stack.fs import probe_atime
from mydyno_vm.raid import Raid
from mydyno_vm.store import Disks, Shape, VmStore

_FILL = 'mkdir -p "$1/deep" && head -c 300000 /dev/urandom >"$1/deep/one" && echo two >"$1/two"'
_DIGEST = 'cd "$1" && find . -type f -exec sha256sum {} + | sort'
_LOGS = 'mkdir "$1/#innodb_redo"; echo 1 >"$1/#innodb_redo/#ib_redo1"; echo 2 >"$1/ib_logfile0"'
_SPOIL = 'echo x >"$1/deep/one"; rm "$1/two"; echo three >"$1/three"'

SHAPES = {
    "xfs on md 0": Shape("xfs", raid={"level": "0", "chunk": "64K"}),
    "ext4 on md 10": Shape("ext4", raid={"level": "10", "chunk": "128K"}),
    "btrfs of two": Shape("btrfs", "-d raid1 -m raid1"),
    "zfs": Shape(
        "zfs", "-o ashift=12", properties={"zfs.recordsize": "16K", "zfs.compression": "lz4"}
    ),
    "zfs with its log apart": Shape(
        "zfs", "-o ashift=12", properties={"zfs.recordsize": "16K", "zfs.log.logbias": "latency"}
    ),
}


def script(guest, text, folder):
    return guest.run(Action(("sh", "-c", text, "sh", str(folder))), timeout_s=300).check().stdout


@pytest.mark.parametrize("name", SHAPES)
def test_what_was_frozen_comes_back(guest, disks, timed, name):
    shape = SHAPES[name]
    mine = disks[:4] if shape.raid else disks[:2]
    home = Path("/var/lib/mydyno") / name.replace(" ", "-")
    store = VmStore(guest, Disks(mine), home, Path("/srv/store"), shape)
    with timed(f"store on {name}: filled, frozen, restored twice"):
        assert store.open() is False
        script(guest, _FILL, store.place.live)
        want = script(guest, _DIGEST, store.place.live)
        store.freeze()
        for _ in range(2):
            store.restore("" if shape.kind == "zfs" else "noatime")
            assert script(guest, _DIGEST, store.place.live) == want
            script(guest, _SPOIL, store.place.live)
            assert script(guest, _DIGEST, store.place.live) != want
        if shape.kind != "zfs":
            assert ask(guest, probe_atime(str(store.where))) == "noatime"
        store.close(keep=False)
    now = ask(guest, Raid(mine).observe())
    assert (now["level"], now["foreign"]) == ("none", "")


@pytest.mark.parametrize("alone", [False, True])
def test_a_redo_log_is_moved_to_its_dataset_and_is_as_it_was_in_each_trial(guest, disks, alone):
    shape, home = SHAPES["zfs with its log apart"], Path(f"/var/lib/mydyno/log-{alone}")
    store = VmStore(guest, Disks(disks[:2]), home, Path("/srv/store"), shape, alone=alone)
    store.open()
    script(guest, _FILL, store.place.live)
    script(guest, _LOGS, store.place.live)
    script(guest, 'chown 61184:61184 "$1"; chmod 700 "$1"', store.place.live)
    store.freeze()
    log = store.where / "log"
    for _ in range(2):
        store.restore("")
        found = script(guest, 'cd "$1" && find . | sort', log).decode().split()
        assert found == [".", "./#innodb_redo", "./#innodb_redo/#ib_redo1", "./ib_logfile0"]
        assert script(guest, 'stat -c "%a %u" "$1"', log) == b"700 61184\n"
        assert script(guest, 'findmnt -n -o SOURCE -T "$1"', log) == b"mydyno/data/log\n"
        assert b"ib_" not in script(guest, 'find "$1"', store.place.live)
        script(guest, 'echo x >"$1/ib_logfile0"; rm -r "$1/#innodb_redo"', log)
    store.close(keep=False)


def test_alone_on_zfs_what_changed_is_rolled_back_and_nothing_copied(guest, disks, timed):
    home = Path("/var/lib/mydyno/alone")
    zfs = SHAPES["zfs"]
    store = VmStore(guest, Disks(disks[:2]), home, Path("/srv/store"), zfs, alone=True)
    assert store.open() is False
    script(guest, _FILL, store.place.live)
    want = script(guest, _DIGEST, store.place.live)
    store.freeze()
    store.restore("")
    pool = script(guest, "zpool get -H -o value guid mydyno", "")
    script(guest, _SPOIL, store.place.live)
    script(guest, 'mv "$1/golden" "$1/away"', home)
    with timed("rolled back"):
        store.restore("")
    assert script(guest, _DIGEST, store.place.live) == want
    assert script(guest, "zpool get -H -o value guid mydyno", "") == pool
    script(guest, 'mv "$1/away" "$1/golden"', home)
    script(guest, "zpool export mydyno", "")  # as a boot leaves it: on the disks, not imported
    store.restore("")
    assert script(guest, _DIGEST, store.place.live) == want
    assert script(guest, "zpool get -H -o value guid mydyno", "") != pool
    store.close(keep=False)
