"""Conformance suites: what each protocol promises, checked on an implementation of it.

Each function takes an implementation and raises `ConformanceError`, which names the promise that
is broken.  Plug-ins call them from their own tests, on anything that mydyno may meet.
"""

import os
import random
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from math import exp, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol
from unittest.mock import patch

from mydyno.campaign.bench import Bench, TrialInput
from mydyno.campaign.designs import Design
from mydyno.host import Completed, Host, Rebootable, ask
from mydyno.journal import (
    Changing,
    Event,
    Interruption,
    Journal,
    MemoryJournal,
    Opened,
    Started,
)
from mydyno.journal.records import MemoryRecords
from mydyno.loads import Target, Verifies, Workload
from mydyno.model import (
    Action,
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
from mydyno.snapshot import Store, settle
from mydyno.stack import Layer, Ledger, Site, converge, restore
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
        require(
            spent_s < design.budget_s + trial_s, "it ends within its budget, or one trial later"
        )
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


def check_applied(site: Site, want: Settings, moving: Collection[str] = ()) -> None:
    """Apply `want` to the first layer of a site, by full keys, and restore it; nothing is left.

    `moving` are bare keys whose values change by themselves, such as the free space of a pool.
    """
    ledger, layer = Ledger(MemoryRecords(), MemoryJournal()), site.layers[0]

    def seen() -> Settings:
        return {k: v for k, v in ask(site.host, layer.observe()).items() if k not in moving}

    before = seen()
    made = converge(site, want, ledger, 0)
    require({c.key for c in made} == {*want}, "each wanted key is changed")
    require(all(c.before == before[c.key.split(".", 1)[1]] for c in made), "`before` is observed")
    require(not converge(site, want, ledger, 1), "applied again, nothing is left to change")
    recorded = {e.key for e in ledger.journal.events() if isinstance(e, Changing)}
    require(recorded == {*want}, "each change is recorded")
    require(converge(site, {}, ledger, 2), "the next treatment does not inherit it")
    require(seen() == before, "what it had is in force again")
    converge(site, want, ledger, 3)
    done = restore(site.host, ledger.records, lambda _: layer)
    require((done.left, done.gone, done.failed) == ([], [], []), "everything can be restored")
    # what mydyno made is removed instead, a machine with all its settings
    if not layer.owned and not isinstance(site.host, Rebootable):
        after = seen()
        other = {k: (v, after.get(k)) for k, v in before.items() if after.get(k) != v}
        require(after == before, f"restoring brings back every value: {other}")
        again = restore(site.host, ledger.records, lambda _: layer)
        require(not again.lines, "what is restored is not restored again")


_WORDS = ("a b", "'", '"', "$HOME", "`id`", "\\", "*", "", "-n", "ü\n!x")
_MARKS = "mydyno 1\n\nmydyno 2 0\nmydyno over\n"  # what a protocol over ssh might look for


def _sh(text: str, *words: object) -> Action:
    return Action(("sh", "-c", text, "sh", *map(str, words)))


def check_host(host: Host, folder: Path) -> None:
    """Check a host that runs commands; `folder` is empty, on this machine and on the host."""
    done = host.run(_sh('printf %s "$1"; printf %s "$1" >&2; exit 255', _MARKS))
    ended = (done.returncode, done.stdout.decode(), done.stderr.decode())
    require(ended == (255, _MARKS, _MARKS), "exit code and both outputs are the command's own")
    words = host.run(_sh('printf "%s|" "$@"', *_WORDS)).stdout.decode()
    require(words == "|".join(_WORDS) + "|", "words arrive as they are")
    raw = bytes(range(256)) * (1 << 14)
    require(host.run(Action(("cat",), raw)).stdout == raw, "input and output are not limited")
    require(host.run(Action(("cat",))).stdout == b"", "input ends where none is given")
    host.run(_sh('echo x >>"$1"', folder / "times"))
    times = host.run(_sh('cat "$1"', folder / "times")).stdout
    require(times == b"x\n", "a command is carried out once")
    for attempt in (host.run, host.start):
        with refused("a missing program is named", (HostError,), "no-such-program: not found on"):
            attempt(Action(("no-such-program",)))
    with refused("a command may not take longer than its timeout", (HostError,), "timed out"):
        host.run(_sh('sleep 100 & echo "$!" >"$1"; wait', folder / "pid"), timeout_s=15)
    pid = int(host.run(_sh('cat "$1"', folder / "pid")).stdout)
    require(_gone(host, pid), "a command that is ended leaves no child")
    _check_background(host, folder)
    _check_files(host, folder)


def _check_background(host: Host, folder: Path) -> None:
    errors = folder / "err"
    host.run(_sh('echo before >"$1"', errors))
    text = """echo $$; until rm "$1" 2>/dev/null; do sleep 0.1; done
    for i in 1 2; do sleep 0.4; echo $i; done; echo after >&2; printf end; exit 7"""
    running = host.start(_sh(text, folder / "go"), stderr=errors)
    lines = running.lines()
    require(int(next(lines)) == running.pid, "`pid` is the command's")
    require(running.returncode() is None, "it has no exit code while it runs")
    began_s = time.monotonic()
    host.run(_sh('echo go >"$1"', folder / "go"))
    require([*lines] == [b"1\n", b"2\n", b"end"], "every line is yielded, the last one unended")
    require(time.monotonic() - began_s > _SLEPT_S, "lines are yielded as they come")
    require(running.stop() == running.returncode() == 7, "it has its own exit code")  # noqa: PLR2004
    shown = host.run(_sh('cat "$1"', errors)).stdout
    require(shown == b"before\nafter\n", "standard error is added to a file of the host")
    for text, code, grace_s in (("", -15, 30), ('trap "" TERM; ', -9, 1)):
        running = host.start(_sh(f'{text}sleep 100 & echo "$!"; wait; sleep 100'))
        child = int(next(running.lines()))
        require(running.stop(grace_s=grace_s) == code, f"stop() ends it by signal {-code}")
        require(_gone(host, child), "stop() ends its children too")


def _check_files(host: Host, folder: Path) -> None:
    here, there, back = (folder / name for name in ("here", "th ere", "back"))
    here.write_bytes(bytes(range(256)) * 1000)
    here.chmod(0o750)
    host.push(here, there)
    host.pull(there, back)
    require(back.read_bytes() == here.read_bytes(), "files arrive byte for byte")
    require(host.run(_sh('stat -c %a "$1"', there)).stdout == b"750\n", "a file keeps its mode")
    with refused("a file that is not there is named", (HostError,), "nowhere"):
        host.pull(folder / "nowhere", back)
    left = {path.name for path in folder.iterdir()}
    require(left == {"times", "pid", "err", "here", "th ere", "back"}, "no part is left behind")


_SLEPT_S = 0.3
_ENDS_S = 5.0


def _gone(host: Host, pid: int) -> bool:
    end_s = time.monotonic() + _ENDS_S
    while time.monotonic() < end_s:
        stat = host.run(Action(("cat", f"/proc/{pid}/stat"))).stdout
        if not stat or stat.rpartition(b")")[2].split()[0] == b"Z":
            return True
        time.sleep(0.05)
    return False


_FILL = """cd "$1" && mkdir -m 750 deep && seq 50000 >deep/one && printf 22 >two && chmod 640 two &&
truncate -s 64M holes && ln -s two link && : >./-rf && chown 65534:65534 ./-rf 2>/dev/null; :"""
_SPOIL = 'cd "$1" && rm two && echo x >>deep/one && echo 3 >three && chmod 777 deep'
_LOOK = """cd "$1" && find . -printf '%P %y %m %U:%G %l\\n' | LC_ALL=C sort &&
find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum &&
test "$(stat -c %b holes)" -lt 2048"""


def check_store(make: Callable[[Host], Store], host: Host, *, cut_off: bool = True) -> None:
    """Check a store on `host`: `make` gives one of the same data set every time.

    With `cut_off`, restoring is also cut off after each of its commands.
    """

    def on_data(store: Store, script: str) -> bytes:
        return host.run(_sh(script, store.place.live)).check().stdout

    store = make(host)
    require(not store.open(), "a new store has no snapshot")
    on_data(store, _FILL)
    want = on_data(store, _LOOK)
    store.freeze()
    for _ in range(2):
        store.restore("")
        settle(host, store)
        require(on_data(store, _LOOK) == want, "bytes, rights, links and holes are restored")
        on_data(store, _SPOIL)
    store.close(keep=True)
    step = 0
    while cut_off and _lost(make(dying := _Dying(host)), dying, step):
        store = make(host)
        require(store.open(), "a snapshot that is kept is found again")
        store.restore("")
        require(on_data(store, _LOOK) == want, f"restored again after it was cut off at {step}")
        on_data(store, _SPOIL)
        store.close(keep=True)
        step += 1
    store = make(host)
    store.open()
    live = store.place.live
    store.close(keep=False)
    require(host.run(Action(("test", "-e", str(live)))).returncode, "close() removes the data")


@dataclass(slots=True)
class _Dying:
    """A host that is lost after some more commands, unless `left` is None."""

    inner: Host
    left: int | None = None

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the inner host's
        return getattr(self.inner, name)

    def run(self, action: Action, *, timeout_s: float = 60.0) -> Completed:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise HostError("the host is lost")
        return self.inner.run(action, timeout_s=timeout_s)


def _lost(store: Store, dying: _Dying, step: int) -> bool:
    """Restore a store whose host is lost after `step` commands, then comes back."""
    store.open()
    dying.left = step
    with suppress(HostError):
        store.restore("")
    lost, dying.left = dying.left < 0, None
    store.close(keep=True)
    return lost


def check_bench(
    make: Callable[[], Bench], trials: Sequence[TrialInput], state: Callable[[], object]
) -> None:
    """Check a bench with trials of different treatments.

    `make` gives a bench of the same campaign every time.  `state` returns all of the host that
    the treatments may change.
    """
    before, bench = state(), make()
    with bench.opened():
        for inputs in trials:
            under = bench.trial(inputs)
            under.ready()
            require(not inputs.settings or state() != before, "ready() applies the treatment")
            with under.sampler():
                require(under.load_host.name, "the load has a host")
            require(under.collect() == "", "a server that was not touched is alive")
        bench.recover()
        require(state() == before, "recover() restores the host")
        bench.trial(trials[-1]).ready()
    require(state() == before, "leaving opened() restores the host")
    failed = make()
    with refused("an error passes through", (HostError,), "of the suite"), failed.opened():
        failed.trial(trials[-1]).ready()
        raise HostError("an error of the suite")
    require(state() == before, "the host is restored after an error too")
