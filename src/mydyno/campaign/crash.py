"""A crash test: trials that end with a power cut of the data's disk, and what was lost by it.

Each trial runs the ledger's load on a fresh data set, cuts the power, starts the server again, and
compares what it has with what was acknowledged before the cut.
"""

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, runtime_checkable

import msgspec

from mydyno.campaign.bench import Bench, TrialBench
from mydyno.campaign.blocks import Blocks
from mydyno.campaign.designs import DesignKind, Fixed, PlanInput
from mydyno.campaign.trial import Attempt, Spent, saved_output, start_load, timed_setup
from mydyno.host import Running, remote_work_folder
from mydyno.loads.ledger import Ack, LedgerLoad, ack
from mydyno.model import (
    HostError,
    Metric,
    Outcome,
    SpecError,
    TrialStatus,
    UnknownEndError,
    Window,
)
from mydyno.stats import Rule

LEAST_S, MOST_S = 1.5, 4.0  # of the load before a cut: InnoDB flushes its log each second at least
_PATIENCE_S = 30.0  # for the load's first commit
_NOTHING = Window(0.0, 0.0)
DETAILS = "power-cut.json"
_BLOCKS = 10


class PowerCut(msgspec.Struct, frozen=True):
    """A cut `at_s` of the monotonic clock: what became of writes that no flush had made durable.

    `inside`: it came in the middle of a write of a data page.
    """

    at_s: float
    lost: int
    kept: int
    torn: int
    inside: bool = False


@dataclass(frozen=True, slots=True)
class Recovery:
    """The server after a cut: the ledger's rows, those in its binary log (None: it has none).

    `seconds` is the time to an answer; `corrupt` is what is damaged, ``""`` if nothing is;
    `repaired` counts torn pages that the doublewrite buffer repaired.
    """

    seconds: float
    rows: frozenset[tuple[int, int]]
    binlog: frozenset[tuple[int, int]] | None
    corrupt: str = ""
    repaired: int = 0


class Power(Protocol):
    """The power of the disk that a server's data are on."""

    def cache(self) -> None:
        """Let writes be durable after a flush only, from now on."""
        ...

    def cut(self, seed: int, *, inside: bool) -> PowerCut:
        """Cut the power, at once or `inside` the next write of a data page; end the server."""
        ...

    def recover(self) -> Recovery:
        """Switch the power on, mount, start the server, and read what it has."""
        ...


@runtime_checkable
class Cuttable(Protocol):
    """A bench of one trial whose disk can lose its power."""

    def power(self) -> Power:
        """Return it, once the trial is ready; raise `SpecError` where there is no lab disk."""
        ...


class CutDetails(msgspec.Struct, frozen=True):
    """What a trial's folder has of its cut; `missing` are some of the lost commits."""

    cut: PowerCut
    acknowledged: int
    missing: list[tuple[int, int]]
    corrupt: str


def attempt(a: Attempt, bench: Bench, spent: Spent) -> Outcome:
    """Run one trial up to its power cut and after it; failures of the host are outcomes."""
    trial, under = a.inputs.trial, bench.trial(a.inputs)
    try:
        metrics = _cut(a, bench, under, spent)
    except UnknownEndError:
        raise
    except (HostError, SpecError) as failed:
        under.collect()
        return Outcome(trial, TrialStatus.FAILED, _NOTHING, error=str(failed))
    under.collect()
    found = {m.name: m.value for m in metrics}
    return Outcome(trial, TrialStatus.OK, Window(0.0, found["load_s"]), tuple(metrics))


def _cut(a: Attempt, bench: Bench, under: TrialBench, spent: Spent) -> list[Metric]:
    if not isinstance(under, Cuttable) or not isinstance(a.inputs.workload, LedgerLoad):
        raise SpecError('a crash test needs a private server, and loads of tool = "ledger"')
    target = timed_setup(a, bench, under, spent)
    chance = random.Random(f"{a.inputs.trial.seed}/{a.inputs.trial.id}")
    inside = a.inputs.trial.block % 2 == 1  # half of the cuts
    power = under.power()
    power.cache()
    folder = a.inputs.folder
    with (
        remote_work_folder(under.load_host, folder) as work,
        _read(start_load(a.inputs, target, under, work, a.elapsed_s), folder) as acks,
    ):
        first = acks.first(_PATIENCE_S)
        acks.until(first + chance.uniform(LEAST_S, MOST_S))
        cut = power.cut(chance.getrandbits(32), inside=inside)
    given = frozenset((one.client, one.number) for one in acks.every if one.at_s < cut.at_s)
    spent.overhead_s += cut.at_s - first
    found = power.recover()
    spent.overhead_s += found.seconds
    return _judged(a, cut, given, found, cut.at_s - first)


def _judged(
    a: Attempt, cut: PowerCut, given: frozenset[tuple[int, int]], found: Recovery, load_s: float
) -> list[Metric]:
    missing = sorted(given - found.rows)
    details = CutDetails(cut, len(given), missing[:100], found.corrupt)
    (a.inputs.folder / DETAILS).write_bytes(msgspec.json.encode(details))
    counts = {
        "commits": len(given),
        "commits_lost": len(missing),
        "corrupt": bool(found.corrupt),
        "inside_a_page": cut.inside,
        "pages_repaired": found.repaired,
        "writes_lost": cut.lost,
        "writes_torn": cut.torn,
    }
    if found.binlog is not None:
        counts["binlog_lost"] = len(given - found.binlog)
        counts["unlogged"] = len(found.rows - found.binlog) if not found.corrupt else 0
    return [
        *(Metric(name, float(value), "count") for name, value in counts.items()),
        Metric("recovery_s", found.seconds, "s"),
        Metric("load_s", load_s, "s"),
        Metric("tps", len(given) / load_s, "/s"),
    ]


class _Acks:
    """What a running load has acknowledged; a thread reads it, so that it never waits for us."""

    def __init__(self, running: Running) -> None:
        self.every: list[Ack] = []
        self._running, self._came, self._over = running, threading.Condition(), False

    def read(self, raw: BinaryIO) -> None:
        """Read to the load's end, and save what it prints."""
        for line in self._running.lines():
            raw.write(line)
            if found := ack(line):
                with self._came:
                    self.every.append(found)
                    self._came.notify_all()
        with self._came:
            self._over = True
            self._came.notify_all()

    def first(self, patience_s: float) -> float:
        """Return when the first commit was acknowledged; raise `HostError` if none is."""
        with self._came:
            self._came.wait_for(lambda: self.every or self._over, patience_s)
            if not self.every:
                raise HostError("the ledger's load has committed nothing; see load.out")
            return self.every[0].at_s

    def until(self, at_s: float) -> None:
        """Return when a commit was acknowledged at this time or later, or the load has ended."""
        with self._came:
            self._came.wait_for(lambda: self.every[-1].at_s >= at_s or self._over, _PATIENCE_S)
            if self._over:
                raise HostError("the ledger's load ended before the cut; see load.out")


@contextmanager
def _read(running: Running, folder: Path) -> Iterator[_Acks]:
    acks = _Acks(running)
    with saved_output(folder) as raw:
        thread = threading.Thread(target=acks.read, args=(raw,), daemon=True)
        thread.start()
        try:
            yield acks
        finally:
            running.stop(grace_s=0.0)
            thread.join()


@dataclass(frozen=True, slots=True)
class Cuts(Blocks):
    """Blocks of one cut of each treatment, in random order; nothing is forecast of them."""

    @property
    def size(self) -> None:
        """Return None: there is no margin to be seen."""


def _make(inputs: PlanInput, rule: Rule) -> Cuts:
    del rule
    blocks = inputs.blocks if inputs.blocks or inputs.budget_s else _BLOCKS
    names, loads = tuple(inputs.treatments), tuple(inputs.workloads)
    return Cuts(names, loads, blocks, inputs.budget_s, inputs.spec.design.seed)


CRASH = DesignKind(
    "a crash test: each trial ends with a power cut of the data's disk",
    _make,
    lambda _: Fixed(0.0, MOST_S),
    alone=True,
)
