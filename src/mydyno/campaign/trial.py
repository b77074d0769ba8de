"""One trial: the treatment applied, the load run and read until its stop rule ends it."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from math import isfinite
from pathlib import Path
from typing import BinaryIO

from mydyno.campaign.bench import Bench, TrialBench, TrialInput
from mydyno.campaign.designs import Stop
from mydyno.host import Running, remote_work_folder, uploaded
from mydyno.host.processes import ending_with_us
from mydyno.loads import Target, Verifies, Workload
from mydyno.model import (
    Action,
    CampaignError,
    HostError,
    Interval,
    Metric,
    Outcome,
    Overhead,
    Reset,
    SpecError,
    Trial,
    TrialStatus,
    UnknownEndError,
    Window,
)
from mydyno.sample import Sampling, footprint, lag
from mydyno.stack.cpus import pinned
from mydyno.stack.protocol import split
from mydyno.stats import summarise, tens

SILENCE_S = 120.0  # without a report for so long a load is stopped as hung
_NOTHING = Window(0.0, 0.0)
_SETUP = "setup_s"
_MOST_RAW = 1 << 29  # bytes of raw output saved for a trial; a day of reports has 0.1 GB
_RAW, _ERRORS = "load.out", "load.err"
_LAST = 5  # lines of a tool's error output that are shown
_COMPLAINT = 400  # characters of it that are shown
_HOURS_S = 12 * 3600.0  # for very large data sets


@dataclass(slots=True)
class Spent:
    """The machine time of one attempt so far: load, overhead that it reports, and setup."""

    setup_s: float = 0.0
    overhead_s: float = 0.0
    intervals: list[Interval] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Return the last `t_s` consumed and all overhead."""
        last_s = self.intervals[-1].t_s if self.intervals else 0.0
        return last_s + self.overhead_s + self.setup_s

    def take(self, item: Interval | Overhead) -> None:
        """Add what the load reported."""
        if isinstance(item, Overhead):
            self.overhead_s += max(item.cost_s, 0.0)  # nothing takes less than no time
        else:
            self.intervals.append(item)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a trial; `elapsed_s` is the campaign's machine time before it."""

    inputs: TrialInput
    stop: Stop
    elapsed_s: float
    watch: Callable[[Interval], None]


def attempt(a: Attempt, bench: Bench, spent: Spent) -> Outcome:
    """Run one trial; failures of the host or the load are outcomes.

    Raises `UnknownEndError` where the host was lost: `Bench.recover` must run before the next
    trial.
    """
    trial, under = a.inputs.trial, bench.trial(a.inputs)
    window, error, status = _NOTHING, "", TrialStatus.FAILED
    try:
        target = timed_setup(a, bench, under, spent)
        window = _run_load(a, target, under, spent)
        overhead_s = _verify(a.inputs, target, under)
        spent.overhead_s += overhead_s if bench.timed else 0.0
    except UnknownEndError:
        raise
    except (HostError, SpecError) as failed:
        error = str(failed)
    except ValueError as unreadable:
        error, status = f"unreadable output: {unreadable}", TrialStatus.UNKNOWN
    if died := under.collect():  # a dead server explains a failed load
        return Outcome(trial, TrialStatus.FAILED, _NOTHING, error=died)
    if error:
        return Outcome(trial, status, _NOTHING, error=error)
    return _judged(a.inputs, window, spent.intervals)


def timed_setup(a: Attempt, bench: Bench, under: TrialBench, spent: Spent) -> Target:
    """Apply the treatment; return the load's target.  What fails takes machine time too."""
    began_s = time.monotonic()
    try:
        return under.ready()
    finally:
        if bench.timed:
            spent.setup_s = time.monotonic() - began_s
            (a.inputs.folder / _SETUP).write_text(f"{spent.setup_s:.3f}\n")


def unknown(trial: Trial, error: UnknownEndError) -> Outcome:
    """Return the outcome of a trial whose host was lost: it may or may not have measured."""
    return Outcome(trial, TrialStatus.UNKNOWN, _NOTHING, error=str(error))


def _judged(a: TrialInput, window: Window, intervals: Sequence[Interval]) -> Outcome:
    response = a.workload.info.response
    try:
        metrics = summarise(intervals, window, response)
    except ValueError as unreadable:
        error = f"unreadable output: {unreadable}"
        return Outcome(a.trial, TrialStatus.UNKNOWN, window, error=error)
    if not any(m.name == response for m in metrics):
        error = f"the load reported no {response}, which is the response; set another response"
        return Outcome(a.trial, TrialStatus.UNKNOWN, window, error=error)
    metrics += [*_gauges(a.folder, window), *footprint.metrics(a.folder)]
    metrics += lag.metrics(a.folder, window)
    return Outcome(a.trial, TrialStatus.OK, window, tuple(metrics), (tens(intervals, response),))


def _gauges(folder: Path, window: Window) -> tuple[Metric, ...]:
    """Return what the window used and left for later as metrics, empty without a sample."""
    from mydyno.sample.derive import POOL, deferred, sampled_series, used  # noqa: PLC0415

    with suppress(HostError):  # a trial is valid without its sample
        found = sampled_series(folder, POOL)
        return (*used(found, window), *deferred(found, window))
    return ()


def _load_environment(inputs: TrialInput, elapsed_s: float) -> Mapping[str, str]:
    """Return the environment of a load: MYDYNO_* variables and ``load/env`` settings."""
    trial, prefix = inputs.trial, "load/env."
    settings = inputs.settings.items()
    mine = {k.removeprefix(prefix): v for k, v in settings if k.startswith(prefix)}
    return {
        "MYDYNO_TREATMENT": trial.treatment,
        "MYDYNO_TRIAL": str(trial.id),
        "MYDYNO_BLOCK": str(trial.block),
        "MYDYNO_SEED": str(trial.seed),
        "MYDYNO_ELAPSED_S": f"{elapsed_s:.6g}",
        **mine,
    }


def start_load(
    inputs: TrialInput, target: Target, under: TrialBench, work: Path, elapsed_s: float = 0.0
) -> Running:
    """Start the load; its error output goes into `work`, a folder on its host.

    It is killed when this process ends for any reason.
    """
    host, environment = under.load_host, _load_environment(inputs, elapsed_s)
    command = inputs.workload.run(target, inputs.trial.seed, environment)
    there = uploaded(host, command, target.work, target.password_file)
    argv = pinned(split(inputs.settings), "load", there.argv)
    return host.start(ending_with_us(Action(argv, there.stdin)), stderr=work / _ERRORS)


def _run_load(a: Attempt, target: Target, under: TrialBench, spent: Spent) -> Window:
    """Run the load until the stop rule has its window; return it."""
    folder = a.inputs.folder
    with under.sampler() as sampled, remote_work_folder(under.load_host, folder) as work:
        running = start_load(a.inputs, target, under, work, a.elapsed_s)
        try:
            sampled.started(running.pid, under.load_host)
            if window := _read_load(a, running, under, sampled, spent):
                return window
        finally:
            code = running.stop()
    raise HostError(_ending(spent, code, folder / _ERRORS))


def _read_load(
    a: Attempt, running: Running, under: TrialBench, sampled: Sampling, spent: Spent
) -> Window | None:
    """Read the load until the stop rule has its window; return that, None if the load ends."""
    with saved_output(a.inputs.folder) as raw, _watchdog(running) as heard:
        for item in a.inputs.workload.parse(_saved(running.lines(), raw)):
            spent.take(item)
            if isinstance(item, Interval):
                heard()  # only intervals show that the load makes progress
                sampled.reported(item.t_s)
                if len(spent.intervals) == 1:
                    under.verify_session()
                a.watch(item)
                if window := a.stop.done(spent.intervals):
                    return window
    return None


def _verify(a: TrialInput, target: Target, under: TrialBench) -> float:
    """Check the data after the load, where the workload can; return the seconds that it took.

    Raises `HostError` for a violation.  Skipped where the server keeps running for the next trial:
    the check would change its caches.
    """
    if not isinstance(a.workload, Verifies) or a.trial.reset is Reset.NONE:
        return 0.0
    began_s, host = time.monotonic(), under.load_host
    for action in a.workload.verify(target, a.trial.seed):
        there = uploaded(host, action, target.work, target.password_file)
        done = host.run(there, timeout_s=_HOURS_S)
        if done.returncode:
            words = (done.stderr or done.stdout).decode(errors="replace").strip()
            raise HostError(f"after the load: {words[-_COMPLAINT:]}")
    return time.monotonic() - began_s


def _ending(spent: Spent, code: int, errors: Path) -> str:
    """Return the message for a load that ended too early."""
    reached = f"after {spent.intervals[-1].t_s:g} s" if spent.intervals else "without a report"
    words = " | ".join(complaint(errors.read_text(errors="replace")))
    detail = f": {words}" if words else ""
    return f"the load ended {reached}, before its window did (exit {code}){detail}"


def complaint(text: str) -> list[str]:
    """Return the lines of a program's error output to show: the last ones.

    Of a Python traceback only the exception is shown, and what a client printed before it.
    """
    plain: list[str] = []
    raised, inside = "", False
    for line in filter(str.strip, text.splitlines()):
        if line.startswith("Traceback (most recent call last)"):
            inside = True
        elif not inside:
            plain += [] if line.endswith("another exception occurred:") else [line]
        elif not line[0].isspace():
            raised, inside = line, False
    return [*plain[: _LAST - 1], raised] if raised else plain[-_LAST:]


@contextmanager
def saved_output(folder: Path) -> Iterator[BinaryIO]:
    """Yield the file in a trial's folder that saves what its load prints."""
    path = folder / _RAW
    try:
        with path.open("wb", buffering=0) as file:
            yield file
    except OSError as error:
        raise CampaignError(f"{path}: {error.strerror}; free disk space and run again") from error


def _saved(lines: Iterable[bytes], raw: BinaryIO) -> Iterator[bytes]:
    """Yield each line after it was written to the raw output file."""
    size = 0
    for line in lines:
        raw.write(line)
        size += len(line)
        if size > _MOST_RAW:
            raise ValueError(f"the load printed more than {_MOST_RAW} bytes; reduce its output")
        yield line


@contextmanager
def _watchdog(running: Running) -> Iterator[Callable[[], None]]:
    """Stop a load without a report for `SILENCE_S`; call the yielded function at each report."""
    last_s = [time.monotonic()]
    over = threading.Event()

    def heard() -> None:
        last_s[0] = time.monotonic()

    def guard() -> None:
        while not over.wait(1.0):
            if time.monotonic() - last_s[0] > SILENCE_S:
                with suppress(HostError):  # the reader gets the same error
                    running.stop(grace_s=1.0)
                return

    thread = threading.Thread(target=guard, daemon=True)
    thread.start()
    try:
        yield heard
    finally:
        over.set()
        thread.join()


def replayed(folder: Path, workload: Workload) -> Spent:
    """Return the machine time from a trial's saved output, as far as it can be parsed."""
    spent = Spent()
    setup, raw = folder / _SETUP, folder / _RAW
    with suppress(OSError, ValueError):  # a truncated file counts as none
        setup_s = float(setup.read_text())
        spent.setup_s = max(setup_s, 0.0) if isfinite(setup_s) else 0.0
    if not raw.exists():
        return spent
    try:
        with raw.open("rb") as lines:
            for item in workload.parse(lines):
                spent.take(item)
    except (ValueError, ArithmeticError, RecursionError):
        return spent  # the line that was cut, or the one that failed the trial
    return spent
