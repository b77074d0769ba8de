"""Every layer, load, design, journal and bench passes its suite; a false one does not.

If this fails, an implementation breaks a promise that the engine, the loop or a report rests on, or
a suite no longer sees a broken promise.
"""

import ast
import json
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from unittest.mock import patch

import pytest

from golden.test_stack_private import _CASES, _layer
from mydyno.campaign.bench import NoServer, TrialInput
from mydyno.campaign.importing import Past
from mydyno.campaign.plan import designs, plan
from mydyno.campaign.spec import decode
from mydyno.campaign.treatments import Environment
from mydyno.host import Local
from mydyno.journal import FileJournal, MemoryJournal
from mydyno.journal.records import MemoryRecords
from mydyno.loads import (
    Target,
    WorkloadInfo,
    command,
    fio,
    imported_workload,
    ledger,
    mysqlslap,
    sysbench_fileio,
    sysbench_oltp,
    sysbench_tpcc,
    tools,
)
from mydyno.model import Action, Reset, SpecError, Trial
from mydyno.stack.block import Block
from mydyno.stack.doses import LabDisk, Slow
from mydyno.stack.layers import layers
from mydyno.stack.protocol import split
from mydyno.testing import FakeBench, FakeHost, FakeLayer
from mydyno.testing.conformance import (
    ConformanceError,
    check_bench,
    check_design,
    check_durable_journal,
    check_journal,
    check_layer,
    check_workload,
)
from toy.mydyno_toy import alternate, dice, throws

GOLDEN = Path(__file__).parents[1] / "golden"


# Layers


def golden_layers():
    """Yield every golden case whose layer changes each wanted key, and nothing else."""
    for path in _CASES:
        case = json.loads(path.read_text())
        changed = {change["key"] for change in case["gives"].get("changes", ())}
        if changed and changed == {*case["want"]}:
            yield pytest.param(path.parent.name, case, id=f"{path.parent.name}/{path.stem}")


BLOCK = {"scheduler": "none", "scheduler.choices": "none mq-deadline", "read_ahead_kb": "128"}
DISK = {"rate": "100%", "read_latency": "0us", "write_latency": "0us", "flush_latency": "0us"}
DISK["credits"] = "0%"
OTHERS = {
    "block": (Block("vda", owned=False), BLOCK, {"scheduler": "mq-deadline"}),
    "dice": (dice.Dice(), {"sides": "6"}, {"sides": "20"}),
    "disk": (
        LabDisk(Path("ctl")),
        DISK,
        {"rate": "80%", "flush_latency": "250us", "credits": "5%"},
    ),
    "slow": (Slow(Path("spin")), {"host": "100%"}, {"host": "80%"}),
}
NO_LAYER = {"server"}  # names the program of a server; nothing observes or plans it


@pytest.mark.parametrize(("kind", "case"), list(golden_layers()))
def test_a_layer_of_ours(kind, case):
    layer, parse = _layer(kind, case.get("layer", {}))
    now = case.get("now") or parse("\n".join(case["raw"]).encode())
    check_layer(layer, now, case["want"])


@pytest.mark.parametrize("name", OTHERS)
def test_another_layer(name):
    check_layer(*OTHERS[name])


def test_no_layer_is_left_out():
    covered = {param.values[0] for param in golden_layers()} | {*OTHERS}
    assert {*layers()} - covered == NO_LAYER


class Deaf(FakeLayer):
    """It plans the same changes again and again: what it reads is spelt otherwise."""

    def plan(self, now, want):
        return [replace(c, after=f"{c.after} kB") for c in super().plan(now, want)]


class Careless(FakeLayer):
    """It takes any key, and knows afterwards what it was asked."""

    def plan(self, now, want):
        changes = super().plan(now, want)
        want.clear()
        return changes


@pytest.mark.parametrize(
    ("layer", "promise"),
    [(Deaf(), "empty once"), (Careless(), "pure"), (FakeLayer(), "unknown key")],
)
def test_a_layer_that_breaks_a_promise(layer, promise):
    with pytest.raises(ConformanceError, match=promise):
        check_layer(layer, {"a": "1"}, {"a": "2"})


# Workloads

LINES = b'{"t_s": 1, "tps": 5}\n{"t_s": 2, "tps": 6}\n{"t_s": 3, "tps": 5}\n'
SECOND = (
    '{"event": "second", "t_s": %d, "tps": 2, "reads": 0, "writes": 4, "other": 4, "errors": 0, '
    '"reconnects": 0, "queue_length": 0, "p99_s": 0.01}\n'
)
COMMITS = "".join(f"ack 0 {n} {n}.5\n{SECOND % n}" for n in (1, 2, 3)).encode()
CELLS = {
    "command": (command, command.CommandParams(["load"]), LINES),
    "fio": (fio, fio.FioParams({"rw": "randrw", "size": "8M"}), "fio/randrw"),
    "ledger": (ledger, ledger.LedgerParams(), COMMITS),
    "mysqlslap": (mysqlslap, mysqlslap.SlapParams(auto_generate=True), "mysqlslap/write_mariadb"),
    "sysbench-fileio": (
        sysbench_fileio,
        sysbench_fileio.FileioParams(test_mode="rndrw"),
        "sysbench-fileio/rndrw",
    ),
    "sysbench-oltp": (
        sysbench_oltp,
        sysbench_oltp.OltpParams(script="oltp_read_write"),
        "sysbench-oltp/read_write",
    ),
    "sysbench-tpcc": (sysbench_tpcc, sysbench_tpcc.TpccParams(), "sysbench-tpcc/mix"),
    "throws": (throws, throws.ThrowsParams(), b"1 1060\n2 1061\n3 1059\n"),
}


@pytest.mark.parametrize("tool", CELLS)
def test_a_workload(tool):
    module, params, output = CELLS[tool]
    if isinstance(output, str):
        output = (GOLDEN / "workloads" / output / "raw.txt").read_bytes()
    (workload,) = module.cells("cell", params, None)
    check_workload(workload, output)


def test_no_workload_is_left_out():
    """Imported logs are no load: it refuses to run, and has golden cases of its own."""
    assert {*tools()} - {*CELLS} == {"imported"}
    (past,) = imported_workload.cells("cell", imported_workload.ImportedParams(), None)
    with pytest.raises(SpecError, match="cannot be run"):
        past.run(Target(Path(), Path()), 1, {})


LOAD = (WorkloadInfo("load"), ("load",))


class Open(command.Command):
    """Its password is where every user of the host sees it."""

    def run(self, target, seed, env):
        return Action((*(f"{k}={v}" for k, v in env.items()), target.password_file.read_text()))


class Late(command.Command):
    """It reports once its output has ended."""

    def parse(self, lines):
        return iter([*super().parse(lines)])


class Deceived(command.Command):
    """It passes over what it cannot read."""

    def parse(self, lines):
        yield from super().parse(line for line in lines if line.startswith(b"{"))


@pytest.mark.parametrize(
    ("workload", "promise"),
    [(Open(*LOAD), "no password"), (Late(*LOAD), "still to come"), (Deceived(*LOAD), "bad line")],
)
def test_a_workload_that_breaks_a_promise(workload, promise):
    with pytest.raises(ConformanceError, match=promise):
        check_workload(workload, LINES)


# Designs

SPEC = """
[campaign]
name = "conformance"
{treatments}
[workloads.w]
tool = "command"
argv = ["load"]

[design]
kind = "{kind}"
{design}
"""
TREATMENTS = """
[treatments.STOCK]
[treatments.A]
"kernel.sysctl.vm.swappiness" = 1
[treatments.B]
"kernel.sysctl.vm.swappiness" = 2
"""
FACTORS = """
[factors]
"kernel.sysctl.vm.swappiness" = [1, 10]
"kernel.sysctl.vm.dirty_ratio" = [20, 40]
"kernel.sysctl.vm.dirty_background_ratio" = [5, 10]
"""
HOST = Environment(2**30, 2)
KINDS = {
    "blocks": (TREATMENTS, "blocks = 5"),
    "crash": (TREATMENTS, "blocks = 5"),
    "diagnose": ("[treatments.STOCK]\n", 'budget = "20m"'),
    "fraction": (FACTORS, 'budget = "90m"'),
    "grid": (FACTORS, 'budget = "90m"'),
    "ladder": (TREATMENTS.replace("treatments.", "bundles."), 'rungs = ["STOCK", "A", "A+B"]'),
    "ladder-blocks": (
        TREATMENTS.replace("treatments.", "bundles."),
        'blocks = 3\nrungs = ["STOCK", "A", "A+B"]',
    ),
    "race": (TREATMENTS, 'budget = "90m"'),
    "screen": (FACTORS, "blocks = 3"),
    "search": (FACTORS, 'budget = "1h"'),
    "switchback": (TREATMENTS, ""),
}
COMPLETE = {"blocks", "crash", "screen"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_design(kind):
    treatments, design = KINDS[kind]
    text = SPEC.format(kind=kind, treatments=treatments, design=design)
    campaign = plan(decode(text, "a.toml"), text, "a.toml", HOST)
    names = {name for name, settings in campaign.treatments.items() if settings or kind != "screen"}
    trials = check_design(lambda: replace(campaign.design), names, complete=kind in COMPLETE)
    assert len({trial.treatment for trial in trials}) > 1


def toy(**keys):
    given = {"treatments": ("STOCK", "A"), "workload": "w", "blocks": 4, "seed": 1}
    return alternate.Alternate(**given | keys, reset=Reset.DATASET)


def test_the_toy_design():
    assert len(check_design(toy, {"STOCK", "A"}, complete=True)) == 8


def test_no_design_is_left_out():
    """Imported runs are not repeated: their design has no trial."""
    assert {*designs()} - {*KINDS} == {"imported"}
    assert check_design(Past, ()) == []


@dataclass(frozen=True)
class Restless(alternate.Alternate):
    """Its next trial depends on how often it was asked."""

    asked: list = field(default_factory=list)

    def next(self, history):
        self.asked.append(history)
        trial = super().next(history)
        return trial and replace(trial, seed=len(self.asked))


class Partial(alternate.Alternate):
    """A block has no room for its last treatment."""

    def next(self, history):
        trial = super().next(history)
        return trial and replace(trial, treatment="STOCK" if trial.block == 2 else trial.treatment)


class Ordered(alternate.Alternate):
    """The baseline is always the first of its block: it meets each block's cold caches."""

    def next(self, history):
        trial = super().next(history)
        return trial and replace(trial, treatment=self.treatments[trial.id % 2])


def endless(*given):
    """Return a design that does not look at its budget."""
    return alternate.Alternate(*given, budget_s=60.0)


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (Restless, "pure"),
        (Partial, "holds every treatment"),
        (Ordered, "first in every block"),
        (endless, "within its budget"),
    ],
)
def test_a_design_that_breaks_a_promise(kind, promise):
    with pytest.raises(ConformanceError, match=promise):
        check_design(
            lambda: kind(("STOCK", "A"), "w", 4, 1, Reset.DATASET), {"STOCK", "A"}, complete=True
        )


# Journals


def test_a_journal_in_memory():
    check_journal(MemoryJournal())


def test_a_journal_in_a_file(tmp_path):
    with closing(FileJournal(tmp_path / "journal.jsonl")) as journal:
        check_journal(journal)
    check_durable_journal(FileJournal, tmp_path / "run" / "journal.jsonl")


class Slow(MemoryJournal):
    """Its last event is not there yet."""

    def events(self):
        yield from self._events[:-1]


class Hasty(FileJournal):
    """It does not wait for the disk."""

    def append(self, event):
        with patch("os.fsync"):
            super().append(event)


def test_a_journal_that_breaks_a_promise(tmp_path):
    with pytest.raises(ConformanceError, match="every event"):
        check_journal(Slow())
    with pytest.raises(ConformanceError, match="on the disk"):
        check_durable_journal(Hasty, tmp_path / "journal.jsonl")


# Benches: the private one is checked in tests/e2e/test_killed_campaign.py


def inputs(folder, *settings):
    trials = [Trial(number, "A", "load", 0, 1) for number in range(len(settings))]
    return [
        TrialInput(t, split(s), command.Command(*LOAD), folder)
        for t, s in zip(trials, settings, strict=True)
    ]


def fake_bench(host, records):
    return lambda: FakeBench(host, MemoryJournal(), records)


def test_the_fake_bench(tmp_path):
    host = FakeHost({"swap": "60"}, lambda _: iter(()))
    trials = inputs(tmp_path, {}, {"db/kernel.swap": "1"})
    check_bench(fake_bench(host, MemoryRecords()), trials, lambda: dict(host.state))


def test_the_bench_without_a_server(tmp_path):
    check_bench(lambda: NoServer(Local()), inputs(tmp_path, {}, {}), dict)


def test_a_bench_that_restores_nothing(tmp_path):
    host = FakeHost({"swap": "60"}, lambda _: iter(()))

    class Leaving(FakeBench):
        def recover(self):
            """Leave the host as it is."""

    with pytest.raises(ConformanceError, match="recover"):
        check_bench(
            lambda: Leaving(host, MemoryJournal()),
            inputs(tmp_path, {"db/kernel.swap": "1"}),
            lambda: dict(host.state),
        )


# Implementations that are not registered, by the methods that make them one, with their tests
IMPLEMENTED = {
    ("run", "start", "push", "pull"): {
        *("Local", "Namespaced", "Ssh"),  # test_hosts.py
        "VmHost",  # an `Ssh` to a machine, which takes a boot: tests/vm
        "FakeHost",  # knows two commands only, and no files
    },
    ("open", "freeze", "restore", "close"): {
        *("DirectoryStore", "LabStore", "DeviceStore"),  # test_stores.py
        "VmStore",  # tests/vm/test_store.py
    },
    ("opened", "trial", "recover"): {
        *("NoServer", "FakeBench", "PrivateBench"),
        "ExistingBench",  # tests/e2e/test_existing_server.py
    },
    ("append",): {"FileJournal", "MemoryJournal"},
}


@pytest.mark.parametrize("methods", IMPLEMENTED)
def test_no_host_store_bench_or_journal_is_left_out(methods):
    root = Path(__file__).parents[2]
    classes = (
        node
        for top in ("src", "packages")
        for path in (root / top).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef) and "Protocol" not in map(ast.unparse, node.bases)
    )
    found = {
        one.name
        for one in classes
        if {*methods} <= {n.name for n in one.body if isinstance(n, ast.FunctionDef)}
    }
    assert found == IMPLEMENTED[methods]


def protocols(text):
    """Yield the name of each protocol of a module, and its number of methods and attributes."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases):
            members = [n for n in node.body if isinstance(n, ast.FunctionDef | ast.AnnAssign)]
            yield node.name, len(members)


def test_a_protocol_has_five_members_at_most():
    package = Path(__file__).parents[2] / "src"
    found = dict(p for path in package.rglob("*.py") for p in protocols(path.read_text()))
    assert {"Host", "Layer", "Store", "Bench", "Workload", "Design", "Journal"} <= {*found}
    assert {name: count for name, count in found.items() if count > 5} == {}


def test_a_sixth_member_is_counted():
    six = "".join(f"    def m{n}(self): ...\n" for n in range(5))
    assert dict(protocols(f"class Six(Protocol):\n    name: str\n{six}")) == {"Six": 6}
