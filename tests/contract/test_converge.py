"""The engine on a host that is a dictionary: side effects, strangers, crashes and full disks."""

import json
from dataclasses import dataclass, field

import pytest

from mydyno.host import Completed
from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import Change, DriftError, HostError, JournalError
from mydyno.stack import Ledger, Site, converge, restore
from mydyno.testing import FakeHost, FakeLayer


@dataclass(frozen=True, slots=True)
class Coupled(FakeLayer):
    """A layer whose setting `a` takes `b` along, as a scheduler takes its tunables."""

    at: str = "here"

    def undo(self, now, first):
        return self.plan(now, {k: v for k, v in first.items() if k in now})


@dataclass(slots=True)
class Machine(FakeHost):
    """A host where setting `a` also changes `b`, unless it is deaf to a key."""

    deaf: set[str] = field(default_factory=set)
    late: int = 0
    hidden: list[str] = field(default_factory=list)

    def run(self, action, *, timeout_s=60.0):
        match action.argv:
            case ("set", key, _) if key in self.deaf:
                raise HostError(f"{key}: the host does not answer")
            case ("get",) if self.hidden:
                key = self.hidden.pop()
                shown = {k: v for k, v in self.state.items() if k != key}
                return Completed(action, 0, json.dumps(shown).encode(), b"")
            case ("set", _, _) if self.late:
                self.late -= 1
                return Completed(action, 0, b"", b"")
            case ("set", "a", _):
                self.state["b"] = "moved along"
            case _:
                pass
        return FakeHost.run(self, action, timeout_s=timeout_s)


FOUND = {"a": "1", "b": "2", "c": "3"}


def begun():
    host = Machine(dict(FOUND), iter)
    return host, Site("db", host, (Coupled("kernel"),)), Ledger(MemoryRecords(), MemoryJournal())


def back(host, ledger):
    return restore(host, ledger.records, lambda _: Coupled("kernel"))


def test_what_an_act_takes_along_is_restored_before_the_next_treatment_and_at_the_end():
    host, site, ledger = begun()
    converge(site, {"db/kernel.a": "9"}, ledger, 0)
    assert host.state == {"a": "9", "b": "moved along", "c": "3"}
    converge(site, {"db/kernel.c": "7"}, ledger, 1)
    assert host.state == {"a": "1", "b": "2", "c": "7"}
    done = back(host, ledger)
    assert host.state == FOUND
    assert done.restored == ["db/kernel.c on here = 3"]
    assert back(host, ledger).lines == []


@pytest.mark.parametrize("then", [{}, {"db/kernel.b": "5"}], ids=["baseline", "another"])
def test_an_act_that_fails_halfway_loses_no_first_value(then):
    """The half that was done was taken for the first value by the next treatment's undoing."""
    host, site, ledger = begun()
    host.deaf = {"c"}
    with pytest.raises(HostError, match="does not answer"):
        converge(site, {"db/kernel.b": "9", "db/kernel.c": "9"}, ledger, 0)
    assert host.state["b"] == "9"
    host.deaf = set()
    converge(site, then, ledger, 1)
    assert host.state == {**FOUND, **({"b": "5"} if then else {})}
    assert back(host, ledger).failed == []
    assert host.state == FOUND


def test_a_change_in_three_steps_is_undone_in_three_steps():
    """The limits of a service: the file, systemd's reload, the restart; the last one counts."""
    host, site, ledger = begun()
    host.late = 2
    converge(site, {"db/kernel.c": "9"}, ledger, 0)
    host.late = 2
    converge(site, {}, ledger, 1)
    assert host.state == FOUND


def test_what_somebody_else_set_is_left_and_the_rest_restored():
    host, site, ledger = begun()
    converge(site, {"db/kernel.b": "9", "db/kernel.c": "9"}, ledger, 0)
    host.state["b"] = "theirs"
    with pytest.raises(DriftError, match="another process changed it"):
        converge(site, {"db/kernel.c": "8"}, ledger, 1)
    done = back(host, ledger)
    assert host.state == {"a": "1", "b": "theirs", "c": "3"}
    assert len(done.left) == 1
    assert "is theirs" in done.left[0]


def test_what_has_vanished_is_named_and_stops_nothing():
    host, site, ledger = begun()
    converge(site, {"db/kernel.b": "9", "db/kernel.c": "9"}, ledger, 0)
    del host.state["b"]
    done = back(host, ledger)
    assert host.state == {"a": "1", "c": "3"}
    assert done.gone == ["db/kernel.b on here: it does not exist any more"]
    assert done.failed == []


def test_what_one_look_misses_is_not_gone():
    """A command whose output was cut short once left a setting changed for good."""
    host, site, ledger = begun()
    converge(site, {"db/kernel.c": "9"}, ledger, 0)
    host.hidden = ["c"]
    done = back(host, ledger)
    assert host.state == FOUND
    assert (done.gone, done.restored) == ([], ["db/kernel.c on here = 3"])


def test_one_that_cannot_be_restored_is_named_and_the_others_are():
    host, site, ledger = begun()
    converge(site, {"db/kernel.b": "9", "db/kernel.c": "9"}, ledger, 0)
    host.deaf = {"b"}
    done = back(host, ledger)
    assert host.state == {"a": "1", "b": "9", "c": "3"}
    assert any("db/kernel.b" in line for line in done.failed)
    host.deaf = set()
    assert back(host, ledger).failed == []
    assert host.state == FOUND


def test_a_full_disk_stops_nothing_that_restores():
    host, site, ledger = begun()
    converge(site, {"db/kernel.a": "9"}, ledger, 0)

    class Full(MemoryRecords):
        def add(self, entry):
            raise JournalError("no space left")

    full = Full()
    full.entries = ledger.records.entries
    done = restore(host, full, lambda _: Coupled("kernel"))
    assert host.state == FOUND
    assert done.failed == []


def test_forward_a_full_disk_stops_the_act():
    host, site, ledger = begun()

    class Full(MemoryRecords):
        def add(self, entry):
            raise JournalError("no space left")

    with pytest.raises(JournalError):
        converge(site, {"db/kernel.a": "9"}, Ledger(Full(), ledger.journal), 0)
    assert host.state == FOUND


def test_after_a_boot_nothing_is_touched():
    host, site, ledger = begun()
    converge(site, {"db/kernel.c": "9"}, ledger, 0)

    class Booted(FakeHost):
        def run(self, action, *, timeout_s=60.0):
            if "boot_id" in action.argv[-1]:
                return super().run(type(action)(("get",)))
            return super().run(action, timeout_s=timeout_s)

    other = Booted(host.state, iter)
    done = back(other, ledger)
    assert host.state["c"] == "9"
    assert done.gone == ["db/kernel.c on here: the host was booted since"]


def test_a_setting_whose_value_cannot_be_read_is_refused():
    _, site, ledger = begun()
    with pytest.raises(HostError, match="could not be restored"):
        converge(site, {"db/kernel.unknown": "9"}, ledger, 0)


def test_the_changes_say_from_where_to_where():
    _, site, ledger = begun()
    (change,) = converge(site, {"db/kernel.c": "9"}, ledger, 0)
    assert isinstance(change, Change)
    assert (change.key, change.before, change.after) == ("db/kernel.c", "3", "9")
