"""A host that is a dictionary, a layer over it, and a bench of both; its load is any `Command`."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.campaign.bench import LoadOnly, TrialBench, TrialInput
from mydyno.host import Completed, Running
from mydyno.journal import Journal
from mydyno.journal.records import MemoryRecords, Records
from mydyno.loads import Target
from mydyno.model import Action, Change, HostError, Interval, Outcome, Probe, Settings, Trial
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

    def trial(self, inputs: TrialInput) -> TrialBench:
        """Return the bench of a load alone, which applies the treatment first."""
        return _FakeTrial(self.host, inputs, self)

    def recover(self) -> None:
        """Restore what a trial of unknown end may have moved."""
        restore(self.host, self.records, lambda _: self.layer)


@dataclass(frozen=True, slots=True)
class _FakeTrial(LoadOnly):
    bench: FakeBench

    def ready(self) -> Target:
        """Apply the treatment."""
        ledger = Ledger(self.bench.records, self.bench.journal)
        converge(self.bench.site, self.inputs.settings, ledger, self.inputs.trial.id)
        return LoadOnly.ready(self)


@dataclass(frozen=True, slots=True)
class Silent:
    """A watcher that does nothing."""

    def started(self, trial: Trial) -> None:
        """Do nothing."""

    def interval(self, interval: Interval) -> None:
        """Do nothing."""

    def finished(self, outcome: Outcome) -> None:
        """Do nothing."""
