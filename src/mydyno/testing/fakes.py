"""A host that is a dictionary, a layer over it, a load it prints, and a bench of them."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.host import Completed, Host, Running
from mydyno.journal import Journal
from mydyno.journal.records import MemoryRecords, Records
from mydyno.loads import Reports, Target, Workload
from mydyno.loads.command import parse
from mydyno.model import Action, Change, HostError, Interval, Outcome, Probe, Settings, Trial
from mydyno.sample import Sampling
from mydyno.stack import Layer, Ledger, Site, converge, restore

Lines = Callable[[Mapping[str, str]], Iterator[bytes]]


@dataclass(slots=True)
class FakeRunning:
    """A load that is a generator."""

    source: Iterator[bytes]
    pid: int = 0
    code: int | None = None

    def lines(self) -> Iterator[bytes]:
        """Yield what the generator yields."""
        yield from self.source
        self.code = 0 if self.code is None else self.code

    def returncode(self) -> int | None:
        """Return 0 once it has ended."""
        return self.code

    def stop(self, *, grace_s: float = 10.0) -> int:
        """End it."""
        del grace_s
        self.code = -15 if self.code is None else self.code
        return self.code


@dataclass(slots=True)
class FakeHost:
    """A host whose settings are a dictionary; `load` makes the lines of a load from its state."""

    state: dict[str, str]
    load: Lines
    name: str = "fake"
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        """Answer ``get`` with the state as JSON, and do ``set KEY VALUE``."""
        del timeout_s
        self.asked.append(action.argv)
        match action.argv:
            case ("get",):
                return Completed(action, 0, json.dumps(self.state).encode(), b"")
            case ("set", key, value):
                self.state[key] = value
                return Completed(action, 0, b"", b"")
            case ("cat", "/proc/sys/kernel/random/boot_id"):
                return Completed(action, 0, b"this boot\n", b"")
            case _:
                return Completed(action, 127, b"", b"unknown command")

    def start(self, action: Action, *, stderr: Path | None = None) -> Running:
        """Start the load."""
        if stderr is not None:
            stderr.touch()
        self.asked.append(action.argv)
        return FakeRunning(self.load(dict(self.state)))

    def push(self, local: Path, remote: Path) -> None:
        """Refuse: a dictionary holds no files."""
        raise HostError(f"{self.name}: no files here: {local} to {remote}")

    def pull(self, remote: Path, local: Path) -> None:
        """Refuse: a dictionary holds no files."""
        raise HostError(f"{self.name}: no files here: {remote} to {local}")


@dataclass(frozen=True, slots=True)
class FakeLayer:
    """A layer whose settings are those of a `FakeHost`."""

    name: str = "kernel"
    owned: bool = False

    def observe(self) -> Probe[Settings]:
        """Return the command that shows the entire state."""
        return Probe(Action(("get",)), lambda raw: dict(json.loads(raw)))

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return one change for each value that differs."""
        return [
            Change(k, now.get(k, ""), v, Action(("set", k, v)))
            for k, v in sorted(want.items())
            if now.get(k) != v
        ]


@dataclass(frozen=True, slots=True)
class FakeLoad:
    """A load with no command worth the name: the host's generator is what it prints."""

    name: str = "load"
    response: str = "tps"
    data_key: str = ""
    needs_server: bool = False

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return nothing."""
        del target
        return ()

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return a command; the lines of the load are those of a command workload."""
        del target, seed, env
        return Action(("load",))

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield what each line reports."""
        yield from parse(lines)

    def describe(self, target: Target) -> Sequence[Action]:
        """Return nothing."""
        del target
        return ()


@dataclass(frozen=True, slots=True)
class FakeBench:
    """A bench over a fake host: settings converge by the records, and are restored at the end."""

    host: FakeHost
    journal: Journal
    records: Records = field(default_factory=MemoryRecords)
    layer: Layer = FakeLayer()
    timed: bool = False

    @property
    def site(self) -> Site:
        """Return the fake host as the database host."""
        return Site("db", self.host, (self.layer,))

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Restore what a killed run left, and again when done."""
        self.recover()
        try:
            yield
        finally:
            self.recover()

    def ready(self, trial: Trial, settings: Settings, workload: Workload, folder: Path) -> Target:
        """Apply the treatment."""
        del workload
        converge(self.site, settings, Ledger(self.records, self.journal), trial.id)
        return Target(work=folder, directory=folder)

    def sampler(self, folder: Path) -> AbstractContextManager[Sampling]:
        """Sample nothing."""
        return nullcontext(Sampling(folder))

    def load_host(self, workload: Workload) -> Host:
        """Return the fake host, where loads run."""
        del workload
        return self.host

    def verify_session(self, settings: Settings, workload: Workload, folder: Path) -> None:
        """Do nothing: there is no session."""
        del settings, workload, folder

    def collect(self, folder: Path) -> str:
        """Return an empty string: there is no server."""
        del folder
        return ""

    def recover(self) -> None:
        """Restore what a trial of unknown end may have moved."""
        restore(self.host, self.records, lambda _: self.layer)


@dataclass(frozen=True, slots=True)
class Silent:
    """A watcher that does nothing."""

    def started(self, trial: Trial) -> None:
        """Do nothing."""

    def interval(self, interval: Interval) -> None:
        """Do nothing."""

    def finished(self, outcome: Outcome) -> None:
        """Do nothing."""
