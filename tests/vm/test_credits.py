"""Caps of a machine's disks are for loads, and each load begins with the credits asked for."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import Action, HostError
from mydyno.stack import Ledger, Site, converge
from mydyno_vm import qemu
from mydyno_vm.store import Disks, VmStore
from mydyno_vm.throttle import Cap, Throttle

BASE, BURST, FULL = 60, 180, 2880  # I/Os a second and credits, low enough for an emulated machine
LOAD_S = 40


@pytest.fixture
def capped(machine):
    """Give a function that caps the disks as the lab does, with a bucket that a test can empty."""
    spec = replace(machine.state.spec, caps=Throttle(Cap(BASE, BURST, FULL)))
    yield lambda level: qemu.cap(replace(machine.state, spec=spec), level)
    machine.cap(0.0)


@pytest.fixture
def store(guest, disks, capped):
    there = VmStore(guest, Disks(disks[:1], capped, "0%"), Path("/var/lib/c"), Path("/srv/c"))
    there.open()
    there.freeze()
    there.restore("noatime")
    yield there
    there.close(keep=False)


def done(guest, store):
    """Return the reads of a load by the second."""
    log = store.home / "log"
    argv = (
        *("fio", "--name=load", f"--filename={store.place.live}/file", "--size=64M", "--bs=4k"),
        *("--rw=randread", "--direct=1", "--ioengine=libaio", "--iodepth=8", "--time_based"),
        *(f"--runtime={LOAD_S}", "--output-format=json", f"--write_iops_log={log}"),
        "--log_avg_msec=1000",
    )
    found = json.loads(guest.run(Action(argv), timeout_s=4 * LOAD_S).check().stdout)
    lines = guest.run(Action(("sh", "-c", 'cat "$1"*', "sh", str(log)))).check().stdout
    rates = [int(line.split(b",")[1]) for line in lines.splitlines()]
    return found["jobs"][0]["read"]["total_ios"], rates


@pytest.mark.parametrize(("level", "extra"), [("full", FULL), ("50%", FULL / 2), ("empty", 0)])
def test_a_load_begins_with_its_credits_and_falls_when_they_are_spent(
    guest, store, timed, level, extra
):
    fill = ("dd", "if=/dev/urandom", f"of={store.place.live}/file", "bs=1M", "count=64")
    guest.run(Action((*fill, "conv=fsync"))).check()
    ledger = Ledger(MemoryRecords(), MemoryJournal())
    for _ in range(2):  # what the first load has spent, the second one has again
        converge(Site("db", guest, store.place.layers), {"db/disk.credits": level}, ledger, 0)
        store.before_load()
        with timed(f"credits {level}"):
            total, rates = done(guest, store)
        assert total == pytest.approx(BASE * LOAD_S + extra, rel=0.06)
        lasts_s = extra / (BURST - BASE)
        before = rates[1 : max(1, int(lasts_s) - 2)]
        after = rates[int(lasts_s) + 3 : -1]
        assert len(after) > 10
        assert all(rate == pytest.approx(BURST, rel=0.15) for rate in before)
        assert all(rate == pytest.approx(BASE, rel=0.15) for rate in after)


def test_data_are_copied_without_caps(guest, store, timed):
    store.before_load()
    store.restore("noatime")
    fill = ("dd", "if=/dev/zero", f"of={store.place.live}/file", "bs=4k", "count=2000")
    with timed("2,000 synchronous writes; 33 s at the base rate"):
        began = guest.run(Action((*fill, "oflag=direct"))).check().stderr.decode()
    assert float(began.rsplit(",", 2)[1].split()[0]) < 2000 / BASE / 2


def test_qemus_refusal_is_an_error(machine):
    with pytest.raises(HostError, match="does not set the caps"):
        qemu.cap(replace(machine.state, spec=replace(machine.state.spec, disks=20)), 0.0)
