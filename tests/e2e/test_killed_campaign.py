"""A campaign killed before and after every record, of its history and of changes, and resumed."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from mydyno.campaign.bench import TrialInput
from mydyno.campaign.blocks import BLOCKS, Blocks
from mydyno.campaign.designs import Fixed
from mydyno.campaign.plan import Campaign
from mydyno.campaign.run_loop import CampaignRun, run
from mydyno.campaign.spec import Spec
from mydyno.host import Completed
from mydyno.journal import (
    Changing,
    Event,
    FileJournal,
    Finished,
    Journal,
    MemoryJournal,
    Started,
    outcomes,
    register,
)
from mydyno.journal.records import Entry, FileRecords, MemoryRecords, Records, nothing_left
from mydyno.journal.register import RunDir
from mydyno.loads import Target, WorkloadInfo
from mydyno.loads.command import Command
from mydyno.model import Action, Change, Cost, JournalError, Outcome, Probe, Settings, Trial
from mydyno.sample import sampler
from mydyno.snapshot import StorePlace
from mydyno.stack.kernel import Kernel
from mydyno.stack.protocol import keys_of, split
from mydyno.stats import Rule
from mydyno.testbed import preparing, private_bench, server_runner
from mydyno.testbed.bench_setup import BenchSetup, CampaignLog, Hosts, ServerLayers
from mydyno.testbed.lock import restored
from mydyno.testbed.private_bench import PrivateBench
from mydyno.testbed.server_runner import ServerRunner
from mydyno.testing import Silent
from mydyno.testing.conformance import check_bench
from mydyno.testing.fakes import FakeRunning

TREATMENTS = {
    "STOCK": {},
    "CALM": {"db/kernel.sysctl.vm.swappiness": "1"},
    "BOTH": {"db/kernel.sysctl.vm.swappiness": "5", "db/kernel.thp": "never"},
    "SYNC": {"db/kernel.thp": "never", "db/mysqld.sync": "100"},
}
DEFAULTS = {"sync": "1"}
SWAP, FREE = "/proc/sys/vm/swappiness", "/proc/sys/vm/min_free_kbytes"
THP, CHOICES = "/sys/kernel/mm/transparent_hugepage/enabled", "always madvise never"
FOUND = {SWAP: "60", FREE: "67584", THP: "[always] madvise never"}
MOUNTED = json.dumps({"filesystems": [{"fstype": "ext4", "options": "rw,lazytime", "target": "/"}]})


class Killed(BaseException):
    """The process is gone: nothing of ours may run after it."""


class Life:
    """A process that dies before or after its n-th record, in whichever file that is."""

    def __init__(self, at: int, *, after: bool) -> None:
        self.left, self.after, self.dead, self.records = at, after, False, 0

    def record(self, write: Callable[[], None]) -> None:
        if self.dead:
            raise Killed
        self.left -= 1
        self.records += 1
        self.dead = self.left < 0
        if not self.dead or self.after:
            write()
        if self.dead:
            raise Killed


class MortalJournal:
    """A campaign's history, written by a process that dies."""

    def __init__(self, inner: FileJournal, life: Life) -> None:
        self.inner, self.life = inner, life

    def append(self, event: Event) -> None:
        self.life.record(lambda: self.inner.append(event))

    def events(self) -> Iterator[Event]:
        return self.inner.events()


class MortalRecords:
    """Change records, written by a process that dies."""

    def __init__(self, inner: FileRecords, life: Life) -> None:
        self.inner, self.life = inner, life

    def add(self, entry: Entry) -> None:
        self.life.record(lambda: self.inner.add(entry))

    def entries(self) -> Iterator[Entry]:
        return self.inner.entries()


class Machine:
    """A host of a few files in /proc and /sys that a dead process cannot reach.

    Transparent huge pages take vm.min_free_kbytes along, as they do in the kernel.
    """

    name = "machine"

    def __init__(self, load: Callable[[Mapping[str, str]], Iterator[bytes]]) -> None:
        self.files, self.load, self.life = dict(FOUND), load, None
        self.options: dict[str, str] = {}  # the server's file
        self.running: dict[str, str] = {}  # what it was started with; empty while it is down
        self.frozen: set[str] = set()
        self.notices: set[str] = set()

    def alive(self) -> None:
        if self.life is not None and self.life.dead:
            raise Killed

    def run(self, action, *, timeout_s=60.0):
        self.alive()
        reply = self.answer(action.argv)
        reply = self.order(action) if reply is None else reply
        return Completed(action, 127 if reply is None else 0, (reply or "").encode(), b"")

    def answer(self, argv):
        match argv:
            case ("sh", "-c", _, "look", *places):
                near = (f for f in self.files if f in places or f.rpartition("/")[0] in places)
                return "".join(f"{f}:{self.files[f]}\n" for f in near)
            case ("show variables",):
                return json.dumps(self.running or DEFAULTS | self.options)
            case ("cat", "/proc/sys/kernel/random/boot_id"):
                return "this boot"
            case ("findmnt", *_):
                return MOUNTED
            case _:
                return None

    def order(self, action):
        match action.argv:
            case ("sysctl", "-q", "-w", setting):
                name, _, value = setting.partition("=")
                self.files["/proc/sys/" + name.replace(".", "/")] = value
            case ("tee", file) if file == THP:
                self.files[THP] = CHOICES.replace(value := action.stdin.decode(), f"[{value}]")
                self.files[FREE] = "67584" if value == "always" else "45056"
            case ("write option", key, value):
                self.options[key] = value
            case ("sh", "-c", _, "post", _, id_):
                self.notices.add(id_)
            case ("sh", "-c", _, "withdraw", _, id_, _):
                self.notices.discard(id_)
            case _:
                return None
        return ""

    def start(self, action, *, stderr=None):
        self.alive()
        if stderr is not None:
            stderr.touch()
        return FakeRunning(self.load(self.files | self.running))


@dataclass
class Server:
    """A private server that knows one option, which it reads when it starts."""

    host: Machine
    pid: int = 7
    endpoint = SimpleNamespace(tcp_host="")
    place = SimpleNamespace(admin=Path("/admin"))

    def initialise(self) -> None:
        self.host.alive()

    def start(self) -> None:
        self.host.alive()
        self.host.running = DEFAULTS | self.host.options

    def stop(self, *, grace_s: float = 1.0) -> None:
        self.host.alive()
        self.host.running = {}

    close = stop

    def ready(self, *, timeout_s: float) -> None:
        self.host.alive()

    def error_tail(self, lines: int = 1) -> list[str]:
        return []


@dataclass(frozen=True, slots=True)
class Options:
    """The layer of the server's option file."""

    name: str = "mysqld"
    owned: bool = True

    def observe(self) -> Probe[Settings]:
        return Probe(Action(("show variables",)), json.loads)

    def plan(self, now: Settings, want: Settings) -> list[Change]:
        return [
            Change(k, now[k], v, Action(("write option", k, v)), Cost.RESTART)
            for k, v in want.items()
            if now[k] != v
        ]


@dataclass
class Files:
    """A data set of no bytes; what is frozen outlives the process."""

    host: Machine
    key: str
    disk: str = ""

    @property
    def place(self) -> StorePlace:
        return StorePlace(Path("/data"), self.disk, "nothing to do")

    def open(self) -> bool:
        self.host.alive()
        return self.key in self.host.frozen

    def freeze(self) -> None:
        self.host.alive()
        self.host.frozen.add(self.key)

    def restore(self, mount: str) -> None:
        self.host.alive()

    def before_load(self) -> None:
        self.host.alive()

    def close(self, *, keep: bool) -> None:
        self.host.alive()
        self.host.frozen = self.host.frozen if keep else set()


def emptied(host: Machine, _: Server, lines: str = "") -> None:
    host.alive()
    host.options.clear()


@pytest.fixture(autouse=True)
def _of_this_test_alone(tmp_path, monkeypatch):
    """Keep the lock and the register of labs off the machine's own; sample nothing.

    A process that is killed loses nothing that it has written: no disk is waited for.
    """
    monkeypatch.setattr(os, "fsync", lambda _: None)
    monkeypatch.setattr(register, "state_place", lambda: tmp_path / "state")
    monkeypatch.setattr(sampler, "probe_binary", lambda: "")
    for module in (server_runner, preparing):
        monkeypatch.setattr(module, "write_owned", lambda host, _, lines="": host.options.clear())
    monkeypatch.setattr(preparing, "page_list", lambda _: b"")
    monkeypatch.setattr(server_runner, "load_buffer_pool", lambda _: None)
    monkeypatch.setattr(server_runner, "_options", lambda _: [])
    for module in (preparing, private_bench):
        monkeypatch.setattr(module, "target_of", lambda _, work, there: Target(work, there))


def lines(files: Mapping[str, str]) -> Iterator[bytes]:
    tps = 1000 + 10 * (60 - int(files[SWAP])) + int(files["sync"])
    for second in range(1, 100):
        yield f'{{"t_s": {second}, "tps": {tps + second % 3}}}\n'.encode()


LOAD = Command(WorkloadInfo("load", data_key="tables", needs_server=True), ("load",))


def campaign() -> Campaign:
    design = Blocks(tuple(TREATMENTS), ("load",), 2, None, 7)
    rule = Rule("killed", "STOCK", {"load": "tps"})
    treatments = {n: split(s) for n, s in TREATMENTS.items()}
    return Campaign(Spec(), "killed", treatments, {"load": LOAD}, BLOCKS, design, Fixed(2, 5), rule)


def bench(folder: Path, host: Machine, journal: Journal, records: Records) -> PrivateBench:
    """Return the product's own bench, over a host and a data set that are made up."""
    log = CampaignLog(RunDir(folder), journal, records, lambda _: None)
    (folder / "work").mkdir(exist_ok=True)
    setup = BenchSetup(
        Hosts(host, host),
        campaign(),
        log,
        folder / "work",
        lambda key: Files(host, key.name),
        (Kernel(keys_of(map(split, TREATMENTS.values()), "kernel")),),
    )
    layers = ServerLayers((Options(),), {"mysqld": DEFAULTS})
    runner = ServerRunner(host, Server(host), setup.log.ledger, layers)
    return PrivateBench(setup, {"auto": runner}, timed=False)


def go(folder: Path, host: Machine, at: int, *, after: bool) -> bool:
    """Run the campaign; return whether it was killed."""
    folder.mkdir(exist_ok=True)
    (folder / register.MARKER).write_text("0123456789abcdef\n")
    life = host.life = Life(at, after=after)
    journal = MortalJournal(FileJournal(folder / "journal.jsonl"), life)
    records = MortalRecords(FileRecords(folder / "changes"), life)
    made = bench(folder, host, journal, records)
    try:
        run(CampaignRun(campaign(), made, RunDir(folder), journal, Silent()))
    except Killed:
        recorded = {e.key for e in journal.events() if isinstance(e, Changing)}
        assert {f"db/mysqld.{key}" for key in host.options} <= recorded
        return True
    finally:
        journal.inner.close()
        records.inner.close()
    assert nothing_left(records.entries())
    assert host.notices == set()
    return False


def finished_outcomes(folder: Path) -> list[Outcome]:
    journal = FileJournal(folder / "journal.jsonl")
    found = list(outcomes(journal.events()))
    journal.close()
    return found


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_record_then_run_again(tmp_path, after):
    uninterrupted = tmp_path / "uninterrupted"
    assert not go(uninterrupted, Machine(lines), 10**6, after=False)
    want = finished_outcomes(uninterrupted)
    records = sum(
        len((uninterrupted / f).read_bytes().splitlines()) for f in ("journal.jsonl", "changes")
    )
    assert [o.trial.id for o in want] == list(range(8))
    for at in range(records):
        folder = tmp_path / f"{at}"
        host = Machine(lines)
        assert go(folder, host, at, after=after), at
        assert not go(folder, host, 10**6, after=False)
        found = finished_outcomes(folder)
        assert [(o.trial, o.metrics, o.status) for o in found] == [
            (o.trial, o.metrics, o.status) for o in want
        ], at
        assert host.files == FOUND, at


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_killed_at_every_record_then_rolled_back(tmp_path, after):
    at, moved = 0, 0
    while go(folder := tmp_path / f"{at}", host := Machine(lines), at, after=after):
        moved += host.files != FOUND
        host.life = None
        records = FileRecords(folder / "changes")
        done = restored(host, records, None)
        records.close()
        assert host.files == FOUND, at
        assert (done.failed, done.left) == ([], []), at
        at += 1
    assert moved > 20  # of the records, so many found the host changed


def test_killed_many_times_in_one_campaign(tmp_path):
    host = Machine(lines)
    runs = 0
    while go(tmp_path, host, 12, after=runs % 2 == 0):
        runs += 1
        assert runs < 60
    assert [o.trial.id for o in finished_outcomes(tmp_path)] == list(range(8))
    assert host.files == FOUND


def test_a_killed_trial_counts_its_machine_time_and_not_its_numbers(tmp_path):
    dying = {"left": 4}

    def dies(state: Mapping[str, str]) -> Iterator[bytes]:
        for line in lines(state):
            dying["left"] -= 1
            if dying["left"] == 0:
                raise Killed
            yield line

    assert go(tmp_path, Machine(dies), 10**6, after=False)
    assert not go(tmp_path, Machine(lines), 10**6, after=False)
    found = finished_outcomes(tmp_path)
    assert [o.machine_time_s for o in found] == [7 + 3, *[7] * 7]
    assert (tmp_path / "trials" / "0000.interrupted-1" / "load.out").exists()


def test_the_history_of_events_is_complete(tmp_path):
    go(tmp_path, Machine(lines), 10**6, after=False)
    journal = FileJournal(tmp_path / "journal.jsonl")
    events = list(journal.events())
    journal.close()
    started = [e.trial.id for e in events if isinstance(e, Started)]
    finished = [e.outcome.trial.id for e in events if isinstance(e, Finished)]
    assert started == finished == list(range(8))


def test_another_campaign_is_refused(tmp_path):
    go(tmp_path, Machine(lines), 10**6, after=False)
    journal = FileJournal(tmp_path / "journal.jsonl")
    other = replace(campaign(), name="other", treatments={"STOCK": {}})
    made = bench(tmp_path, Machine(lines), journal, MemoryRecords())
    with pytest.raises(JournalError, match="contains another campaign"):
        run(CampaignRun(other, made, RunDir(tmp_path), journal, Silent()))
    journal.close()


def test_the_mount_of_a_lab_disk_is_recorded_before_it_is_made(tmp_path):
    journal, host = MemoryJournal(), Machine(lines)
    recorded = []

    class Mounted(Files):
        def restore(self, mount: str) -> None:
            recorded.extend((mount, e.key) for e in journal.events() if isinstance(e, Changing))

    made = bench(tmp_path, host, journal, MemoryRecords())
    store = Mounted(host, "key", disk="loop3")
    trial = Trial(0, "A", "load", 0, 1)
    settings = split({"db/fs.mount": "lazytime"})
    under = made.trial(TrialInput(trial, settings, LOAD, tmp_path))
    (change,) = under.restored(store, settings)
    assert recorded == [("lazytime", "db/fs.mount")]
    assert (change.key, change.after) == ("db/fs.mount", "lazytime")


def test_the_private_bench_passes_the_conformance_suite(tmp_path):
    host, journal, records = Machine(lines), MemoryJournal(), MemoryRecords()
    (tmp_path / register.MARKER).write_text("0123456789abcdef\n")
    trials = [
        TrialInput(Trial(number, name, "load", 0, 1), split(settings), LOAD, tmp_path)
        for number, (name, settings) in enumerate(TREATMENTS.items())
        if name != "SYNC"
    ]
    check_bench(lambda: bench(tmp_path, host, journal, records), trials, lambda: dict(host.files))
