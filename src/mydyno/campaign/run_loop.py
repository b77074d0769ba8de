"""The trial loop; to resume a campaign is to run the loop again."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mydyno.campaign.bench import Bench, TrialInput
from mydyno.campaign.plan import Campaign
from mydyno.campaign.trial import Attempt, Spent, attempt, replayed, unknown
from mydyno.journal import (
    Finished,
    Interruption,
    Journal,
    Opened,
    Started,
    lost_s,
    open_trial,
    outcomes,
    spent_s,
)
from mydyno.journal.register import RunDir
from mydyno.loads import ReportsTotals, Workload
from mydyno.model import (
    Interval,
    JournalError,
    Metric,
    Outcome,
    Reset,
    Trial,
    TrialStatus,
    UnknownEndError,
    Window,
)
from mydyno.stats import summarise, tens, unit_of


class Watcher(Protocol):
    """Receives the events of a campaign, to display them."""

    def started(self, trial: Trial) -> None:
        """Receive a trial that is about to be prepared."""
        ...

    def interval(self, interval: Interval) -> None:
        """Receive an interval that the load has reported."""
        ...

    def finished(self, outcome: Outcome) -> None:
        """Receive the outcome of a trial."""
        ...


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """One run of a campaign: its run directory, journal, bench and watcher.

    `note` returns what the design is to know of a finished trial besides the load's metrics;
    `attempt` runs one trial.
    """

    campaign: Campaign
    bench: Bench
    files: RunDir
    journal: Journal
    watcher: Watcher
    build: str = ""
    note: Callable[[Outcome], Sequence[Metric]] = lambda _: ()
    attempt: Callable[[Attempt, Bench, Spent], Outcome] = attempt


def run(r: CampaignRun) -> None:
    """Run the remaining trials; the bench restores the host in any case.

    Raises `JournalError` for a journal of another campaign.  A KeyboardInterrupt passes through
    once the interrupted trial is recorded.
    """
    _open(r)
    _settle(r)
    with r.bench.opened():
        earlier = len(outcomes(r.journal.events()))
        while trial := r.campaign.next(outcomes(r.journal.events())):
            _one(r, trial, earlier)


def _open(r: CampaignRun) -> None:
    opened = Opened(r.campaign.digest, r.campaign.name, r.build)
    match next(iter(r.journal.events()), None):
        case None:
            r.journal.append(opened)
        case Opened(digest=digest, build=build, name=name):
            if digest != opened.digest:
                raise JournalError(
                    f"{r.files.path}: contains another campaign ({name}), or this one with another "
                    "spec, scale, --set or --budget, or as another version planned it; "
                    "choose a new directory with -o, or remove this one"
                )
            if build != opened.build:
                raise JournalError(
                    f"{r.files.path}: was started on {build}, but the server is now "
                    f"{opened.build}; choose a new directory with -o"
                )
        case other:
            raise JournalError(
                f"{r.files.journal}:1: first event is {type(other).__name__}, not Opened; restore "
                "the file from a copy"
            )


def _settle(r: CampaignRun) -> None:
    """Record the trial that a killed run left open as interrupted, with its machine time."""
    if trial := open_trial(r.journal.events()):
        spent = replayed(r.files.trial(trial.id), r.campaign.workloads[trial.workload])
        r.journal.append(Interruption(trial, spent.seconds))


def _one(r: CampaignRun, trial: Trial, earlier: int) -> None:
    """Run a trial; after the `earlier` ones, of another process, the server was started again."""
    r.watcher.started(trial)
    inputs = TrialInput(
        trial=trial,
        settings=r.campaign.treatments[trial.treatment],
        workload=r.campaign.workloads[trial.workload],
        folder=r.files.begin(trial.id),
    )
    spent = Spent()
    history = outcomes(r.journal.events())
    if earlier and trial.reset is Reset.NONE:
        last = replace(history[earlier - 1], status=TrialStatus.UNKNOWN)
        history = (*history[: earlier - 1], last, *history[earlier:])
    stop = r.campaign.stop(trial, history)
    a = Attempt(inputs, stop, spent_s(r.journal.events()), r.watcher.interval)
    r.journal.append(Started(trial))
    lost = False
    try:
        outcome = r.attempt(a, r.bench, spent)
    except KeyboardInterrupt:
        r.journal.append(Interruption(trial, spent.seconds))
        raise
    except UnknownEndError as error:
        outcome, lost = unknown(trial, error), True
    used_s = spent.seconds + lost_s(r.journal.events(), trial)
    outcome = replace(outcome, machine_time_s=used_s)
    if outcome.status is TrialStatus.OK:
        outcome = replace(outcome, metrics=(*outcome.metrics, *r.note(outcome)))
    r.journal.append(Finished(outcome))
    r.watcher.finished(outcome)
    if lost:
        r.bench.recover()


def _with_totals(
    folder: Path, workload: Workload, window: Window, metrics: Sequence[Metric]
) -> list[Metric]:
    """Return the metrics of a window; for an entire run, the tool's own totals are exact."""
    if window.start_s > 0 or not isinstance(workload, ReportsTotals):
        return list(metrics)
    with (folder / "load.out").open("rb") as lines:
        totals = workload.totals(lines)
    exact = [Metric(name, value, unit_of(name)) for name, value in totals.items()]
    return [*exact, *(m for m in metrics if m.name not in totals)]


def reread(
    files: RunDir, found: Sequence[Outcome], workloads: Mapping[str, Workload]
) -> list[tuple[Outcome, Sequence[Interval]]]:
    """Return each outcome with its intervals, its metrics computed again from the raw output.

    Without raw output an outcome stays as in the journal; with unreadable output it is UNKNOWN, and
    its error names the file.
    """
    reread_all: list[tuple[Outcome, Sequence[Interval]]] = []
    for outcome in found:
        workload = workloads[outcome.trial.workload]
        folder = files.trial(outcome.trial.id)
        intervals = replayed(folder, workload).intervals
        try:
            again = _again(outcome, intervals, folder, workload)
        except (ValueError, ArithmeticError) as error:
            problem = f"{folder / 'load.out'}: {error}"
            again, intervals = replace(outcome, status=TrialStatus.UNKNOWN, error=problem), []
        reread_all.append((again, intervals))
    return reread_all


def _again(
    outcome: Outcome, intervals: Sequence[Interval], folder: Path, workload: Workload
) -> Outcome:
    """Return an outcome with metrics from its intervals; raise `ValueError` for invalid ones."""
    metrics = summarise(intervals, outcome.window, workload.info.response)
    if not metrics:
        return outcome
    metrics = _with_totals(folder, workload, outcome.window, metrics)
    series = (tens(intervals, workload.info.response),)
    names = {m.name for m in metrics}
    metrics += [m for m in outcome.metrics if m.name not in names]  # what was sampled
    return replace(outcome, metrics=tuple(metrics), series=series)
