"""The engine on a host that is a dictionary: side effects, strangers, crashes and full disks."""

import ast
import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from mydyno.host import Completed
from mydyno.journal import MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.model import Action, Change, DriftError, HostError, JournalError
from mydyno.stack import LayerPlan, Ledger, Site, converge, converge_made, converge_server, restore
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


def test_a_layer_of_another_version_is_named_and_the_others_are_restored():
    host, _, ledger = begun()
    for name, key in (("newer", "b"), ("kernel", "c")):
        converge(Site("db", host, (Coupled(name),)), {f"db/{name}.{key}": "9"}, ledger, 0)

    def layer_of(acting):
        if acting.layer == "newer":
            raise HostError("newer: this version cannot restore it")
        return Coupled(acting.layer)

    done = restore(host, ledger.records, layer_of)
    assert host.state == {**FOUND, "b": "9"}
    assert [line for line in done.failed if line.startswith("db/newer.b on here: newer:")]


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


def test_what_a_campaign_sets_after_a_boot_is_restored():
    """The record of the first boot stayed, so that nothing of the second one was restored."""

    @dataclass(slots=True)
    class Booting(FakeHost):
        boots: int = 1

        def run(self, action, *, timeout_s=60.0):
            if "boot_id" in action.argv[-1]:
                return Completed(action, 0, b"boot %d\n" % self.boots, b"")
            return FakeHost.run(self, action, timeout_s=timeout_s)

    host = Booting(dict(FOUND), iter)
    site, ledger = Site("db", host, (Coupled("kernel"),)), begun()[2]
    converge(site, {"db/kernel.c": "9"}, ledger, 0)
    host.boots, host.state["c"] = 2, "3"
    assert back(host, ledger).gone == ["db/kernel.c on here: the host was booted since"]
    converge(site, {"db/kernel.c": "8"}, ledger, 1)
    assert back(host, ledger).restored == ["db/kernel.c on here = 3"]
    assert host.state == FOUND


def test_a_setting_whose_value_cannot_be_read_is_refused():
    _, site, ledger = begun()
    with pytest.raises(HostError, match="could not be restored"):
        converge(site, {"db/kernel.unknown": "9"}, ledger, 0)


def test_each_change_records_the_values_before_and_after():
    _, site, ledger = begun()
    (change,) = converge(site, {"db/kernel.c": "9"}, ledger, 0)
    assert isinstance(change, Change)
    assert (change.key, change.before, change.after) == ("db/kernel.c", "3", "9")


# The only actor

PACKAGE = Path(__file__).parents[2] / "src" / "mydyno"
ENGINE = "stack/converge.py"
TAKEN_APART = {"asdict", "astuple", "vars", "__dict__", "__getattribute__"}
READERS = {ENGINE, "host/protocol.py"}  # the second one reads that of a probe, which only asks


def executors(text, name):
    """Return each place where a module reaches for the command of a change.

    A change gives it up as the attribute `action`, a layer as `online()`; the engine's private
    functions carry commands out.
    """
    for node in ast.walk(ast.parse(text)):
        if found := reached(node):
            yield f"{name}:{node.lineno}: {found}"


def reached(node):
    match node:
        case ast.Attribute(attr="action" | "online" as word, ctx=ast.Load()):
            return word
        case ast.Constant(value="action") | ast.MatchClass(cls=ast.Name(id="Change")):
            return ast.unparse(node) if isinstance(node, ast.Constant) else "match"
        case ast.Name(id=word) | ast.Attribute(attr=word) if word in TAKEN_APART:
            return "" if ast.unparse(node) == "msgspec.structs.asdict" else word
        case ast.ImportFrom(module="mydyno.stack.converge", names=names):
            return ", ".join(n.name for n in names if n.name.startswith("_"))
        case _:
            return ""


def test_nothing_but_the_engine_executes_a_change():
    others = (Path(__file__).parents[2] / "packages").glob("*/src/*")
    found = [
        place
        for folder in (PACKAGE, *others)
        for path in sorted(folder.rglob("*.py"))
        if (name := str(path.relative_to(folder))) not in READERS
        for place in executors(path.read_text(), name)
    ]
    assert found == []


def test_the_engine_reads_the_command_of_a_change_in_one_place():
    places = list(executors((PACKAGE / ENGINE).read_text(), ENGINE))
    assert len([place for place in places if place.endswith(": action")]) == 1


@pytest.mark.parametrize(
    "second",
    [
        "for change in layer.plan(now, want):\n    host.run(change.action).check()",
        "host.run(getattr(change, 'action'))",
        "any(map(host.run, map(attrgetter('action'), changes)))",
        "match change:\n    case Change(_, _, _, act):\n        host.run(act)",
        "host.run(astuple(change)[3])",
        "host.run(dataclasses.asdict(change)['action'])",
        "host.run(vars(change)['a' + 'ction'])",
        "for action in layer.online(changes):\n    host.run(action)",
        "from mydyno.stack.converge import _run",
    ],
)
def test_a_second_executor_is_found(second):
    assert list(executors(second, "planted"))


# What mydyno has made


class Order(MemoryJournal):
    """A journal that notes which commands the host had run when something was recorded."""

    def __init__(self, host):
        super().__init__()
        self.host, self.states = host, []

    def append(self, event):
        self.states.append(dict(self.host.state))
        super().append(event)


SET = Action(("set", "c", "9"))


def server(host, *, hot=False):
    layer = FakeLayer("mysqld", owned=True)
    return [LayerPlan(layer, layer.plan(dict(host.state), {"a": "9"}), hot=hot)]


def test_a_servers_changes_are_recorded_then_made_then_observed():
    host, site, _ = begun()
    journal, seen = Order(host), []
    ledger = Ledger(MemoryRecords(), journal)
    plans = server(host)
    (change,) = converge_server(site, plans, ledger, 3, lambda: seen.append(dict(host.state)))
    assert (change.key, change.before, change.after) == ("db/mysqld.a", "1", "9")
    assert journal.states == [FOUND]
    assert [one["a"] for one in seen] == ["9"]


def test_a_file_that_several_changes_need_is_written_once():
    host, site, ledger = begun()
    write = Action(("set", "a", "9"))
    layer = FakeLayer("mysqld", owned=True)
    plans = [LayerPlan(layer, (Change(key, "1", "9", write),)) for key in ("a", "x", "y")]
    converge_server(site, plans, ledger, 0, lambda: None)
    assert host.asked == [write.argv]


def test_a_setting_is_sent_to_a_running_server_and_not_to_a_stopped_one():
    class Server(FakeLayer):
        def online(self, changes):
            return [Action(("set", "b", change.after)) for change in changes]

    for hot, want in ((True, "9"), (False, "2")):
        host, site, ledger = begun()
        plan = LayerPlan(Server("mysqld", owned=True), (Change("c", "3", "9", SET),), hot=hot)
        converge_server(site, [plan], ledger, 0, lambda: None)
        assert (host.state["b"], host.state["c"]) == (want, "9")


def test_a_server_that_is_not_what_was_asked_fails():
    host, site, ledger = begun()

    def differs():
        raise DriftError("a is 1, not 9")

    with pytest.raises(DriftError):
        converge_server(site, server(host), ledger, 0, differs)


def test_a_full_disk_stops_a_server_from_being_changed():
    host, site, ledger = begun()

    class Full(MemoryJournal):
        def append(self, event):
            raise JournalError("no space left")

    with pytest.raises(JournalError):
        converge_server(site, server(host), Ledger(ledger.records, Full()), 0, pytest.fail)
    assert host.state == FOUND


def test_what_a_lab_is_made_of_is_observed_after_the_act():
    host, _, _ = begun()
    layer = FakeLayer("raid", owned=True)
    host.late = 2  # an array is stopped, its superblocks are cleared, the next is made
    converge_made(host, layer, {"c": "9"})
    assert host.state["c"] == "9"
    host.late = 3
    with pytest.raises(DriftError, match=r"raid\.c is 9, not 3"):
        converge_made(host, layer, {"c": "3"})
