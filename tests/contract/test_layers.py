"""Every layer that changes a host keeps the contract: what is applied is seen, and goes back."""

import pytest

from mydyno.host import Local, ask
from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.lab import LabSpec, create
from mydyno.lab.lab_link import planned
from mydyno.model import DriftError, SpecError
from mydyno.stack import Ledger, Site, converge
from mydyno.stack.block import Block
from mydyno.stack.kernel import Kernel
from mydyno.stack.link import Link
from mydyno.testing import FakeHost, FakeLayer
from mydyno.testing.conformance import ConformanceError, check_applied


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


def test_the_fake_layer():
    check_applied(*fake())


@pytest.mark.root
def test_the_block_layer_on_a_real_device(disk):
    site = Site("db", Local(), (Block(disk.name, owned=True),))
    now = ask(Local(), site.layers[0].observe())
    other = next(s for s in now["scheduler.choices"].split() if s != now["scheduler"])
    check_applied(site, {"db/block.scheduler": other, "db/block.read_ahead_kb": "64"})


@pytest.mark.root
def test_a_scheduler_and_its_own_tunable(disk):
    layer = Block(disk.name, owned=True)
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
    check_applied(
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
        check_applied(site, {"db/link.rate": "100mbit"})
        with pytest.raises(SpecError, match="100kbit to 100gbit"):
            converge(site, {"db/link.rate": "2bit"}, Ledger(MemoryRecords(), MemoryJournal()), 0)
    finally:
        link.down()


@pytest.mark.root
def test_the_layer_of_a_link_with_a_delay(tmp_path):
    link = planned(Local(), tmp_path / "wire")
    link.up()
    try:
        state = link.state
        layer = Link(state.device, state.link, state.peer, tmp_path / "wire")
        check_applied(Site("db", Local(), (layer,)), {"db/link.delay": "500us"})
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


def test_a_layer_that_does_not_show_a_value_as_it_was():
    site, want = fake()

    class Rounded(FakeHost):
        """A host that restores 60 as 64."""

        def run(self, action, *, timeout_s=60.0):
            if action.argv == ("set", "swap", "60"):
                action = type(action)(("set", "swap", "64"))
            return super().run(action, timeout_s=timeout_s)

    rounded = Rounded(dict(site.host.state), nothing)
    with pytest.raises((ConformanceError, DriftError)):
        check_applied(Site("db", rounded, site.layers), want)
