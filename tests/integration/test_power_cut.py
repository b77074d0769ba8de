"""A lab disk whose power is cut: what was flushed stays, what was not is lost, kept or torn."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest

from integration.lab_steps import MIB, lab_maker, within
from mydyno.lab import Stripe
from mydyno.model import HostError, RefusedError

pytestmark = pytest.mark.root
BLOCK = 16384


@pytest.fixture(params=[Stripe(), Stripe(3, 4096)], ids=["one", "striped"])
def disk(request, tmp_path):
    with lab_maker(tmp_path) as make:
        yield make(size=64 * MIB, stripe=request.param)


def dd(disk, *words, data=b""):
    argv = ["dd", "status=none", f"bs={BLOCK}", *words]
    return subprocess.run(argv, input=data, capture_output=True, check=False)


def write(disk, number, byte, *, flush):
    """Write a block past the kernel's cache."""
    more = ("conv=notrunc,fsync" if flush else "conv=notrunc", "oflag=direct", f"seek={number}")
    return dd(disk, f"of={disk.device}", *more, "iflag=fullblock", data=byte * BLOCK).returncode


def read(disk, number):
    done = dd(disk, f"if={disk.device}", "iflag=direct", f"skip={number}", "count=1")
    return done.stdout


def faults(disk):
    return disk.stats()["faults"]


def test_what_was_flushed_stays_and_what_was_not_is_lost(disk):
    assert write(disk, 0, b"a", flush=True) == 0
    disk.fault("cache on")
    assert write(disk, 1, b"b", flush=True) == 0
    assert write(disk, 2, b"c", flush=False) == 0
    assert read(disk, 2) == b"c" * BLOCK
    disk.fault("cut lost")
    assert write(disk, 3, b"d", flush=False) != 0, "without power nothing is written"
    assert read(disk, 0) == b""
    assert faults(disk)["power"] == "off"
    disk.power_on()
    assert [read(disk, n)[:1] for n in range(4)] == [b"a", b"b", b"\0", b"\0"]
    assert faults(disk)["cut"]["lost"] == 1


def test_a_disk_that_ignores_flushes_loses_what_was_flushed(disk):
    disk.fault("cache lies")
    assert write(disk, 1, b"b", flush=True) == 0
    disk.fault("cut lost")
    disk.power_on()
    assert read(disk, 1) == b"\0" * BLOCK


def test_a_write_into_a_trap_is_torn_at_a_sector(disk):
    write(disk, 7, b"o", flush=True)
    disk.fault("cache on")
    disk.fault(f"trap 4 {7 * BLOCK}-{8 * BLOCK}")
    assert write(disk, 6, b"x", flush=True) == 0
    assert write(disk, 7, b"n", flush=False) != 0
    disk.power_on()
    found = read(disk, 7)
    new = found.count(b"n")
    assert found == b"n" * new + b"o" * (BLOCK - new)
    assert new % 512 == 0
    assert new < BLOCK


def test_a_share_of_the_requests_fails(disk):
    disk.fault("errors 0 0.5 0")
    done = [write(disk, n, b"x", flush=False) for n in range(40)]
    assert 5 < sum(code != 0 for code in done) < 35
    disk.fault("errors 0 0 1")
    assert write(disk, 0, b"x", flush=True) != 0
    disk.fault("errors 0 0 0")
    assert write(disk, 0, b"x", flush=True) == 0


def test_a_stall_holds_all_answers_up(disk):
    began = time.monotonic()
    disk.fault("stall 3")
    assert write(disk, 0, b"x", flush=True) == 0
    assert 2.9 < time.monotonic() - began < 15


def test_a_cut_in_the_middle_of_a_load_keeps_each_write_that_was_flushed(disk):
    """A writer counts up in each block in turn, with a flush each; no number may be missing."""
    disk.fault("cache on")
    done: list[int] = []

    def work():
        handle = os.open(disk.device, os.O_WRONLY)
        try:
            for number in range(1, 100_000):
                os.pwrite(handle, bytes([number % 251]) * 512, number % 100 * 512)
                os.fdatasync(handle)
                done.append(number)
        except OSError:
            return
        finally:
            os.close(handle)

    thread = threading.Thread(target=work)
    thread.start()
    assert within(300, lambda: len(done) > 200)
    disk.fault("cut drawn 5")
    thread.join(timeout=60)
    assert not thread.is_alive()
    disk.power_on()
    last = done[-1]
    raw = b"".join(read(disk, n) for n in range(4))
    for number in range(last - 98, last + 1):  # the block of the next one may be new
        assert raw[number % 100 * 512] == number % 251, f"{number} of {last}"


def test_the_power_stays_off_while_the_kernel_has_the_filesystem(disk, tmp_path):
    """A mount that another namespace has would show what the cut has taken."""
    place = tmp_path / "mounted"
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", disk.device], check=True)
    subprocess.run(["mount", disk.device, place], check=True)
    ours = Path("/proc/self/ns/mnt").readlink()
    other = subprocess.Popen(["unshare", "--mount", "sleep", "300"])
    try:
        assert within(10, lambda: Path(f"/proc/{other.pid}/ns/mnt").readlink() != ours)
        disk.fault("cache on")
        disk.fault("cut lost")
        with pytest.raises(RefusedError, match="unmount"):
            disk.power_on()
        subprocess.run(["umount", place], check=True)
        with pytest.raises(RefusedError, match="power on: still mounted in the mount namespace"):
            disk.power_on()
    finally:
        other.kill()
        other.wait()
        subprocess.run(["umount", place], check=False, capture_output=True)
    disk.power_on()


@pytest.mark.parametrize(
    ("orders", "words"),
    [
        (("cut lost",), "cache on first"),
        (("power on",), "power: is on"),
        (("cache on", "cut lost", "cache off"), "power on first"),
        (("cache on", "freeze"), "cache off first"),
        (("cut",), "not one of: cap on|off"),
    ],
)
def test_an_order_that_cannot_be_obeyed_names_the_next_step(disk, orders, words):
    for order in orders[:-1]:
        disk.fault(order)
    with pytest.raises(HostError, match=words.replace("|", r"\|")):
        disk.fault(orders[-1])


def test_the_base_is_restored_after_a_cut(disk):
    write(disk, 0, b"a", flush=True)
    disk.freeze()
    disk.fault("cache on")
    write(disk, 0, b"b", flush=False)
    disk.fault("cut lost")
    disk.drop()
    assert read(disk, 0) == b"a" * BLOCK
    assert faults(disk)["cache"] == "off"
    assert Path(disk.device).exists()
