"""A change that takes a reboot: hosts that can carry it out, others are refused before a record."""

from dataclasses import dataclass, field

import pytest

from mydyno.journal import Changing, MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import Action, Change, Cost, RefusedError
from mydyno.stack import Ledger, Site, converge
from mydyno.stack.kernel import Kernel
from mydyno.testing import FakeHost, FakeLayer

FULL = {"6.1": "6.1.0-56", "6.12": "6.12.117"}
KERNEL = Kernel(("release", "sysctl.vm.swappiness"))


@dataclass(frozen=True, slots=True)
class Planned(FakeLayer):
    """The kernel layer's own plan, over a host that is a dictionary."""

    at: str = ""

    def plan(self, now, want):
        return [on_fake(change) for change in KERNEL.plan(now, want)]

    def undo(self, now, first):
        return [on_fake(change) for change in KERNEL.undo(now, first)]


def on_fake(change):
    if change.cost is Cost.REBOOT:
        return change
    action = Action(("set", change.key, change.after))
    return Change(change.key, change.before, change.after, action)


@dataclass(slots=True)
class Machine(FakeHost):
    booted: list[str] = field(default_factory=list)

    def reboot(self, release=""):
        self.booted.append(release)
        self.state["release"] = FULL.get(release, release)
        self.state["sysctl.vm.swappiness"] = "60"  # what was set is gone


def site(kind):
    host = kind({"release": FULL["6.1"], "sysctl.vm.swappiness": "60"}, iter)
    return host, Site("db", host, (Planned(),))


def test_the_machine_boots_first_and_the_rest_is_set_after():
    host, there = site(Machine)
    ledger = Ledger(MemoryRecords(), MemoryJournal())
    want = {"db/kernel.release": "6.12", "db/kernel.sysctl.vm.swappiness": "1"}
    assert {c.key for c in converge(there, want, ledger, 0)} == set(want)
    assert host.state == {"release": FULL["6.12"], "sysctl.vm.swappiness": "1"}
    assert converge(there, want, ledger, 1) == []
    converge(there, {}, ledger, 2)
    assert host.state == {"release": FULL["6.1"], "sysctl.vm.swappiness": "60"}
    converge(there, want, ledger, 3)
    converge(there, {}, ledger, 4)
    assert host.state == {"release": FULL["6.1"], "sysctl.vm.swappiness": "60"}
    assert host.booted == ["6.12", FULL["6.1"]] * 2


def test_a_host_that_cannot_be_booted_is_refused_before_any_record():
    host, there = site(FakeHost)
    journal = MemoryJournal()
    with pytest.raises(RefusedError, match="a reboot of fake"):
        converge(there, {"db/kernel.release": "6.12"}, Ledger(MemoryRecords(), journal), 0)
    assert not [e for e in journal.events() if isinstance(e, Changing)]
    assert host.state["release"] == FULL["6.1"]
