"""Conformance suites of the pure protocols: Layer, Workload, Design, Journal.

Each function takes an implementation and raises `ConformanceError`, which names the promise that
is broken.  Plug-ins call them from their own tests, on anything that mydyno may meet.
"""

import os
import random
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager, suppress
from math import exp, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol
from unittest.mock import patch

from mydyno.campaign.designs import Design
from mydyno.host import ask
from mydyno.journal import Event, Interruption, Journal, Opened, Started
from mydyno.loads import Target, Verifies, Workload
from mydyno.model import (
    HostError,
    Interval,
    JournalError,
    Outcome,
    RefusedError,
    Settings,
    SpecError,
    Trial,
    TrialStatus,
    Window,
)
from mydyno.stack import Layer
from mydyno.stats import summarise, tens
from mydyno.testing.fakes import FakeHost

_SECRET = "S3cret of the suite"  # noqa: S105 - it is looked for where no password may be
_MOST_TRIALS = 2000
_CUTS = 40
_REPORTS = 61


class ConformanceError(AssertionError):
    """An implementation breaks a promise of its protocol."""


def require(holds: object, promise: str) -> None:
    """Raise `ConformanceError` with the promise unless it holds."""
    if not holds:
        raise ConformanceError(promise)


@contextmanager
def refused(promise: str, kinds: tuple[type[Exception], ...], words: str) -> Iterator[None]:
    """Require that the block raises one of `kinds` with `words` in its message."""
    try:
        yield
    except kinds as error:
        require(words in str(error), f"{promise}: {words!r} is not in {str(error)!r}")
    else:
        raise ConformanceError(promise)


def check_layer(
    layer: Layer, now: Settings, want: Settings, *, unknown: str = "no such key"
) -> None:
    """Check a layer without a host: `want` sets each of its keys to another value than `now`."""
    given = (dict(now), dict(want))
    changes = list(layer.plan(now, want))
    require({*want} <= {c.key for c in changes}, "plan() changes each key that differs")
    require(changes == list(layer.plan(now, want)), "plan() is pure: the same changes every time")
    require((now, want) == given, "plan() leaves its arguments as they are")
    require(all(c.before != c.after for c in changes), "a change has another value after it")
    require(all(c.before == now.get(c.key, c.before) for c in changes), "`before` is observed")
    done = {**now, **{c.key: c.after for c in changes}}
    require(not layer.plan(done, want), "plan() is empty once its changes are applied")
    with refused("an unknown key is refused by name", (SpecError, RefusedError), unknown):
        layer.plan(now, {unknown: "1"})
    require(_asked(layer) == _asked(layer), "observe() is pure: the same command every time")


def _asked(layer: Layer) -> list[tuple[str, ...]]:
    host = FakeHost({}, lambda _: iter(()))
    with suppress(HostError):  # a command that the fake host does not know
        ask(host, layer.observe())
    return host.asked


def check_workload(
    workload: Workload, output: bytes, *, bad: bytes = b"[no report of any tool\n"
) -> None:
    """Check a workload with the `output` of a real run: two reports or more, and no error.

    `bad` is a line that its tool never prints.
    """
    _check_commands(workload)
    lines = output.splitlines(keepends=True)
    items = list(workload.parse(lines))
    intervals = [item for item in items if isinstance(item, Interval)]
    require(intervals, "parse() yields an interval for each report")
    times = [0.0, *(i.t_s for i in intervals)]
    require(times == sorted(set(times)), "intervals end one after another, after 0 s")
    response = workload.info.response
    require(all(response in i.values for i in intervals), f"each interval has the {response}")
    values = [value for i in intervals for value in i.values.values()]
    require(all(isfinite(value) for value in values), "values are finite numbers")
    feed = iter(lines)
    next(iter(workload.parse(feed)))
    require(next(feed, b""), "parse() yields a report while the next ones are still to come")
    for cut in range(0, len(output), max(1, len(output) // _CUTS)):
        found = list(workload.parse(output[:cut].splitlines(keepends=True)))
        require(found == items[: len(found)], f"output cut off at byte {cut} gives fewer reports")
    with refused("a bad line is refused by number", (ValueError,), f"line {len(lines) + 1}"):
        list(workload.parse([*lines, bad]))


def _check_commands(workload: Workload) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "client.cnf"
        file.write_text(f'[client]\nuser="load"\npassword="{_SECRET}"\n')
        target = Target(folder, folder, str(folder / "s"), password_file=file, database="test")
        run = workload.run(target, 7, {"MYDYNO_SEED": "7"})
        require(run == workload.run(target, 7, {"MYDYNO_SEED": "7"}), "run() is pure")
        require("MYDYNO_SEED=7" in run.argv, "run() passes the environment on")
        verify = workload.verify(target, 7) if isinstance(workload, Verifies) else ()
        actions = [run, *workload.prepare(target), *workload.describe(), *verify]
    for action in actions:
        shown = (*action.argv, action.stdin.decode(errors="replace"))
        require(not any(_SECRET in word for word in shown), "no password in a command or its input")
    require(workload.info.name, "a workload has a name")


def check_design(
    make: Callable[[], Design],
    treatments: Collection[str],
    *,
    response: str = "tps",
    trial_s: float = 60.0,
    complete: bool = False,
) -> list[Trial]:
    """Play a design to its end on a host of some noise; return its trials.

    Trials take `trial_s`.  With `complete`, each block holds every treatment, and no treatment
    comes first in all of them.
    """
    design = make()
    history: list[Outcome] = []
    while trial := design.next(tuple(history)):
        require(trial == design.next(tuple(history)), "next() is pure: the same trial every time")
        require(trial == make().next(list(history)), "another process goes on with the same trial")
        require(trial.id == len(history), "trials are numbered from 0, without a gap")
        require(trial.treatment in treatments, f"{trial.treatment} is a treatment of the campaign")
        require(len(history) < _MOST_TRIALS, f"it ends within {_MOST_TRIALS} trials")
        history.append(_outcome(trial, response, trial_s))
    trials = [outcome.trial for outcome in history]
    spent_s = len(trials) * trial_s
    if design.budget_s is not None:
        block_s = trial_s * sum(trial.block == 0 for trial in trials)
        require(spent_s <= max(design.budget_s, block_s), "it ends within its budget")
    elif design.total is not None:
        require(len(trials) == design.total, "it runs as many trials as it declares")
    if complete:
        _check_blocks(trials, treatments)
    return trials


def _check_blocks(trials: list[Trial], treatments: Collection[str]) -> None:
    blocks: dict[int, list[Trial]] = {}
    for trial in trials:
        blocks.setdefault(trial.block, []).append(trial)
    require(
        all({t.treatment for t in block} == {*treatments} for block in blocks.values()),
        "each block holds every treatment",
    )
    first = {block[0].treatment for block in blocks.values()}
    require(len(blocks) == 1 or len(first) > 1, "no treatment comes first in every block")


def _outcome(trial: Trial, response: str, trial_s: float) -> Outcome:
    chance = random.Random(f"{trial.id}/{trial.treatment}")
    level = 1000 * exp(chance.gauss(0, 0.02))
    intervals = [Interval(t, {response: level + chance.gauss(0, 20)}) for t in range(1, _REPORTS)]
    window = Window(10, _REPORTS - 1)
    metrics, series = summarise(intervals, window, response), (tens(intervals, response),)
    return Outcome(trial, TrialStatus.OK, window, metrics, series, trial_s)


class Durable(Journal, Protocol):
    """A journal in a file."""

    def close(self) -> None:
        """Close the file; every event is in it."""
        ...


def check_journal(journal: Journal) -> None:
    """Check a new journal of any kind."""
    for number, event in enumerate(_EVENTS):
        reading = journal.events()
        journal.append(event)
        require(list(reading)[:number] == _EVENTS[:number], "reading goes on while it is written")
    require(list(journal.events()) == _EVENTS, "events() yields every event, oldest first")


def check_durable_journal(make: Callable[[Path], Durable], path: Path) -> None:
    """Check a journal in a file: `make` opens `path`, which does not exist yet."""
    with patch("os.fsync", side_effect=os.fsync) as synced, closing(make(path)) as journal:
        for event in _EVENTS:
            synced.reset_mock()
            journal.append(event)
            require(synced.called, "append() returns once the event is on the disk")
        with refused("one process at a time writes it", (JournalError,), str(path.parent)):
            make(path)
    written = path.read_bytes()
    lengths = set()
    for end in {*range(0, len(written), 9), len(written)}:
        path.write_bytes(written[:end])
        with closing(make(path)) as journal:
            found = list(journal.events())
            require(found == _EVENTS[: len(found)], f"cut off at byte {end} it has the first ones")
            journal.append(_EVENTS[-1])
            lengths.add(len(found))
        with closing(make(path)) as journal:
            require(list(journal.events()) == [*found, _EVENTS[-1]], "it is continued after a cut")
    require(lengths == {*range(len(_EVENTS) + 1)}, "an event is lost only with its own line")


_TRIAL = Trial(0, "A", "w", 0, 1)
_EVENTS: list[Event] = [Opened("digest", "name"), Started(_TRIAL), Interruption(_TRIAL, 3.5)]
