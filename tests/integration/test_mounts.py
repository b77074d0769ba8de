"""Mount options on real filesystems of a lab disk: shown, and for access times really in effect."""

from contextlib import contextmanager
from pathlib import Path

import pytest

from integration.lab_steps import HOST, lab_maker, run
from mydyno.host import ask
from mydyno.model import DriftError
from mydyno.stack.fs import Fs, mkfs, mount, probe_atime
from mydyno.testbed.bench_setup import verify_mount

pytestmark = pytest.mark.root

KINDS = ("ext4", "xfs", "btrfs")
OPTIONS = {
    "ext4": ["barrier=0,commit=60", "nodelalloc,discard", "data=ordered,stripe=16,acl,commit=5"],
    "xfs": ["logbsize=256k,logbufs=8", "allocsize=1m,discard,inode64", "swalloc,largeio,noquota"],
    "btrfs": ["nodatacow", "compress=zstd", "discard=sync", "compress-force,commit=60", "nodiscard",
              "nodatasum,autodefrag,space_cache=v2,thread_pool=4,max_inline=2048"],
}  # fmt: skip


@contextmanager
def mounted(device, kind, options, where):
    run(*mount(kind, options, device, where))
    try:
        yield Fs(str(where), device)
    finally:
        run("umount", where)


def takes_discards(device):
    """Return whether the kernel lets a device discard.

    A loop device into whose free queue someone wrote 0 never does again, until the kernel
    removes the device: no value is accepted any more.
    """
    return (Path("/sys/block") / Path(device).name / "queue/discard_max_bytes").read_text() != "0\n"


@pytest.fixture(params=KINDS)
def formatted(request, tmp_path):
    with lab_maker(tmp_path) as make:
        disk = make()
        run(*mkfs(request.param, "", disk.device))
        where = tmp_path / "mnt"
        where.mkdir()
        yield disk.device, request.param, where


def test_access_times_are_updated_as_asked(formatted):
    device, kind, where = formatted
    for options in ("noatime", "relatime", "strictatime", "lazytime,strictatime", "atime,lazytime"):
        with mounted(device, kind, options, str(where)) as layer:
            verify_mount(HOST, layer, options)
            assert list(where.glob(".mydyno*")) == []
            now = ask(HOST, layer.observe())
            assert layer.plan(now, {"mount": options}) == []


def test_a_mount_that_does_otherwise_is_found_out(formatted):
    device, kind, where = formatted
    with mounted(device, kind, "noatime", str(where)) as layer:
        assert ask(HOST, probe_atime(str(where))) == "noatime"
        with pytest.raises(DriftError, match="mounted without strictatime"):
            verify_mount(HOST, layer, "strictatime")
        now = ask(HOST, layer.observe())
        change = layer.plan(now, {"mount": "strictatime"})[0]
        HOST.run(change.action).check()
        verify_mount(HOST, layer, "strictatime")
        with pytest.raises(DriftError, match="mounted without noatime"):
            verify_mount(HOST, layer, "noatime")


# files of btrfs do not take the attribute from their folder
@pytest.mark.parametrize("formatted", ["ext4", "xfs"], indirect=True)
def test_access_times_that_do_not_change_although_the_mount_options_ask_for_it(formatted):
    device, kind, where = formatted
    with mounted(device, kind, "strictatime", str(where)) as layer:
        run("chattr", "+A", where)
        with pytest.raises(DriftError, match=r"with strictatime, but .* behave as with noatime"):
            verify_mount(HOST, layer, "strictatime")


def test_options_that_the_kernel_spells_its_own_way_are_seen(formatted):
    device, kind, where = formatted
    for options in OPTIONS[kind]:
        if "discard" in options and not takes_discards(device):
            continue
        with mounted(device, kind, options, str(where)) as layer:
            verify_mount(HOST, layer, options)
            assert layer.plan(ask(HOST, layer.observe()), {"mount": options}) == []
