"""Every layer that changes a host keeps the contract: what is applied is seen, and goes back."""

import pytest

from mydyno.host import Local, ask
from mydyno.journal import Changing, MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.lab import LabSpec, create
from mydyno.lab.lab_link import planned
from mydyno.model import DriftError, SpecError
from mydyno.stack import Ledger, Site, converge, restore
from mydyno.stack.block import Block
from mydyno.stack.kernel import Kernel
from mydyno.stack.link import Link
from mydyno.testing import FakeHost, FakeLayer


def nothing(state):
    yield from ()


def fake():
    host = FakeHost({"swap": "60", "thp": "always"}, nothing)
    return Site("db", host, (FakeLayer(),)), {"db/kernel.swap": "1", "db/kernel.thp": "never"}


@pytest.fixture
def disk(tmp_path):
    device = create(Local(), LabSpec(f"contract-{tmp_path.name}", 64 << 20), tmp_path / "lab")
    try:
        yield device
    finally:
        device.remove()


def check(site, want, *, owned=False, alive=()):
    """Apply, apply again, and go back; each step as the journal records it and the host shows it.

    `alive` are keys of figures that move by themselves, such as the free space of a pool.
    """
    journal, records = MemoryJournal(), MemoryRecords()
    ledger = Ledger(records, journal)
    layer = site.layers[0]
    before = dict(ask(site.host, layer.observe()))
    made = converge(site, want, ledger, 0)
    assert {c.key for c in made} == set(want)
    assert all(c.before == before[c.key.split(".", 1)[1]] for c in made)
    assert converge(site, want, ledger, 1) == []
    recorded = [e for e in journal.events() if isinstance(e, Changing)]
    assert {e.key for e in recorded} == set(want)
    assert converge(site, {}, ledger, 2) != []  # the next treatment does not inherit
    keys = [key.split(".", 1)[1] for key in want]
    after = ask(site.host, layer.observe())
    assert {k: after[k] for k in keys} == {k: before[k] for k in keys}
    assert {k: v for k, v in after.items() if k not in alive} == {
        k: v for k, v in before.items() if k not in alive
    }
    converge(site, want, ledger, 3)
    back = restore(site.host, records, lambda _: layer)
    assert (back.left, back.gone, back.failed) == ([], [], [])
    assert {line.partition(" = ")[0].partition(" on ")[0] for line in back.restored} >= (
        set() if owned else set(want)
    )
    if not owned:
        assert ask(site.host, layer.observe()) == before
        assert restore(site.host, records, lambda _: layer).lines == []


def test_the_fake_layer():
    check(*fake())


@pytest.mark.root
def test_the_block_layer_on_a_real_device(disk):
    site = Site("db", Local(), (Block(disk.name, ours=True),))
    now = ask(Local(), site.layers[0].observe())
    other = next(s for s in now["scheduler.choices"].split() if s != now["scheduler"])
    check(site, {"db/block.scheduler": other, "db/block.read_ahead_kb": "64"}, owned=True)


@pytest.mark.root
def test_a_scheduler_and_its_own_tunable(disk):
    layer = Block(disk.name, ours=True)
    site, ledger = Site("db", Local(), (layer,)), Ledger(MemoryRecords(), MemoryJournal())
    want = {"db/block.scheduler": "mq-deadline", "db/block.iosched.fifo_batch": "4"}
    before = dict(ask(Local(), layer.observe()))
    converge(site, want, ledger, 0)
    assert ask(Local(), layer.observe())["iosched.fifo_batch"] == "4"
    converge(site, {}, ledger, 1)
    assert ask(Local(), layer.observe()) == before  # nr_requests too, which the scheduler moved
    with pytest.raises(SpecError, match="not one of"):
        converge(site, {"db/block.scheduler": "cfq"}, ledger, 2)


@pytest.mark.root
@pytest.mark.alone
def test_the_kernel_layer():
    check(
        Site("db", Local(), (Kernel(("sysctl.vm.swappiness",)),)),
        {"db/kernel.sysctl.vm.swappiness": "43"},
    )


@pytest.mark.root
def test_the_layer_of_the_labs_link():
    link = planned(Local())
    link.up()
    try:
        state = link.state
        site = Site("db", Local(), (Link(state.device, state.link, state.peer),))
        check(site, {"db/link.rate": "100mbit"}, owned=True)
        with pytest.raises(SpecError, match="100kbit to 100gbit"):
            converge(site, {"db/link.rate": "2bit"}, Ledger(MemoryRecords(), MemoryJournal()), 0)
    finally:
        link.down()


def test_a_host_that_does_not_follow_is_drift():
    site, want = fake()

    class Stubborn(FakeHost):
        def run(self, action, *, timeout_s=60.0):
            if action.argv[:2] == ("set", "thp"):
                action = type(action)(("get",))
            return super().run(action, timeout_s=timeout_s)

    stubborn = Stubborn(dict(site.host.state), nothing)
    with pytest.raises(DriftError, match=r"db/kernel.thp is always, not never"):
        converge(
            Site("db", stubborn, site.layers), want, Ledger(MemoryRecords(), MemoryJournal()), 0
        )
