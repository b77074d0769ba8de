"""The loop of trials; resuming is running it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from mydyno.analyse import summarise, tens, unit_of
from mydyno.campaign.bench import Bench
from mydyno.campaign.plan import Campaign
from mydyno.campaign.rundir import RunDir
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
from mydyno.model import (
    Interval,
    JournalError,
    Metric,
    Outcome,
    Status,
    Trial,
    UnknownEndError,
    Window,
)
from mydyno.workloads import ReportsTotals, Workload


class Watcher(Protocol):
    """Receives the events of a campaign, to show them to a person."""

    def started(self, trial: Trial) -> None:
        """Hear that a trial is about to be made ready."""
        ...

    def interval(self, interval: Interval) -> None:
        """Hear what the load has reported."""
        ...

    def finished(self, outcome: Outcome) -> None:
        """Hear how a trial has ended."""
        ...


@dataclass(frozen=True, slots=True)
class CampaignRun:
    """One run of a campaign: where it is kept, on what bench, under whose eyes."""

    campaign: Campaign
    bench: Bench
    files: RunDir
    journal: Journal
    watcher: Watcher
    build: str = ""


def run(r: CampaignRun) -> None:
    """Run the trials still to be run; the bench puts the host back, however this ends.

    Raises `JournalError` for a journal of another campaign, `Interrupted` never: a
    KeyboardInterrupt passes through once the trial it cut short is set down.
    """
    _open(r)
    _settle(r)
    with r.bench.opened():
        while trial := r.campaign.next(outcomes(r.journal.events())):
            _one(r, trial)


def _open(r: CampaignRun) -> None:
    opened = Opened(r.campaign.digest, r.campaign.name, r.build)
    match next(iter(r.journal.events()), None):
        case None:
            r.journal.append(opened)
        case Opened(digest=digest, build=build, name=name):
            if digest != opened.digest:
                raise JournalError(
                    f"{r.files.path}: holds another campaign ({name}) or another version of its "
                    "spec; choose a new directory with -o, or remove this one"
                )
            if build != opened.build:
                raise JournalError(
                    f"{r.files.path}: was begun on {build}, but the server now is {opened.build}; "
                    "choose a new directory with -o"
                )
        case other:
            raise JournalError(
                f"{r.files.journal}:1: begins with {type(other).__name__}, not Opened"
            )


def _settle(r: CampaignRun) -> None:
    """Set down the trial that a killed run left open, with the machine time it had used."""
    if trial := open_trial(r.journal.events()):
        spent = replayed(r.files.trial(trial.id), r.campaign.workloads[trial.workload])
        r.journal.append(Interruption(trial, spent.seconds))


def _one(r: CampaignRun, trial: Trial) -> None:
    r.watcher.started(trial)
    folder = r.files.begin(trial.id)
    spent = Spent()
    a = Attempt(
        trial=trial,
        settings=r.campaign.treatments[trial.treatment],
        workload=r.campaign.workloads[trial.workload],
        stop=r.campaign.stop(trial, outcomes(r.journal.events())),
        folder=folder,
        elapsed_s=spent_s(r.journal.events()),
        watch=r.watcher.interval,
    )
    r.journal.append(Started(trial))
    lost = False
    try:
        outcome = attempt(a, r.bench, spent)
    except KeyboardInterrupt:
        r.journal.append(Interruption(trial, spent.seconds))
        raise
    except UnknownEndError as error:
        outcome, lost = unknown(trial, error), True
    used_s = spent.seconds + lost_s(r.journal.events(), trial)
    outcome = replace(outcome, machine_time_s=used_s)
    r.journal.append(Finished(outcome))
    r.watcher.finished(outcome)
    if lost:
        r.bench.recover()


def _whole(
    folder: Path, workload: Workload, window: Window, metrics: Sequence[Metric]
) -> list[Metric]:
    """Return the metrics of a window; of all of a run, its own totals are exact."""
    if window.start_s > 0 or not isinstance(workload, ReportsTotals):
        return list(metrics)
    with (folder / "load.out").open("rb") as lines:
        totals = workload.totals(lines)
    exact = [Metric(name, value, unit_of(name)) for name, value in totals.items()]
    return [*exact, *(m for m in metrics if m.name not in totals)]


def reread(
    files: RunDir, found: Sequence[Outcome], workloads: Mapping[str, Workload]
) -> list[tuple[Outcome, Sequence[Interval]]]:
    """Return each outcome with its intervals, what it says derived again from the raw output.

    An outcome whose raw output is gone keeps what is in the journal; one whose output can no longer
    be read is UNKNOWN, and its error names the file.
    """
    reread_all: list[tuple[Outcome, Sequence[Interval]]] = []
    for outcome in found:
        workload = workloads[outcome.trial.workload]
        folder = files.trial(outcome.trial.id)
        intervals = replayed(folder, workload).intervals
        try:
            again = _again(outcome, intervals, folder, workload)
        except (ValueError, ArithmeticError) as error:
            told = f"{folder / 'load.out'}: {error}"
            again, intervals = replace(outcome, status=Status.UNKNOWN, error=told), []
        reread_all.append((again, intervals))
    return reread_all


def _again(
    outcome: Outcome, intervals: Sequence[Interval], folder: Path, workload: Workload
) -> Outcome:
    """Return an outcome with what its intervals say; raise `ValueError` where they say nonsense."""
    metrics = summarise(intervals, outcome.window, workload.response)
    if not metrics:
        return outcome
    metrics = _whole(folder, workload, outcome.window, metrics)
    series = (tens(intervals, workload.response),)
    told = {m.name for m in metrics}
    metrics += [m for m in outcome.metrics if m.name not in told]  # what was sampled
    return replace(outcome, metrics=tuple(metrics), series=series)
