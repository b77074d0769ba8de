"""`mydyno status`: the progress of a campaign, or the leases of a host."""

import sys
from collections.abc import Sequence
from math import ceil
from pathlib import Path
from time import time
from typing import Annotated

import msgspec
import typer

from mydyno.campaign.designs import overhead_s, spent
from mydyno.campaign.plan import Campaign
from mydyno.campaign.timing import Costs, schedule
from mydyno.cli.leases import leases_of
from mydyno.cli.run_directory import recorded, reopen
from mydyno.cli.terminal import Json, folders, print_json, print_message, print_result
from mydyno.host import named, reach
from mydyno.journal import Event, held, open_trial, outcomes, spent_s
from mydyno.journal.register import RunDir
from mydyno.model import Outcome
from mydyno.report.lease import render_leases
from mydyno.report.units import duration


class Status(msgspec.Struct, frozen=True):
    """Progress of a campaign; `state` is running, finished or stopped.

    `total` trials are an upper limit where `at_most`: treatments may leave earlier.  `left_s` is
    the machine time that the trials left are expected to take, `budget_left_s` what the budget, if
    there is one, has left.
    """

    campaign: str
    state: str
    finished: int
    failed: int
    total: int | None
    machine_time_s: float
    present: str | None
    at_most: bool = False
    left_s: float | None = None
    budget_left_s: float | None = None


Where = Annotated[
    str,
    typer.Argument(
        metavar="DIR|HOST",
        help="A run directory; or a host, for its leases: local, ssh://user@host.",
        autocompletion=folders,
    ),
]


def status(where: Where, *, json: Json = False) -> None:
    """Show the progress of a campaign, or the leases of a host, and what to do next."""
    if named(where):
        _leases(where, json=json)
    else:
        _campaign(Path(where), json=json)


def _campaign(directory: Path, *, json: bool) -> None:
    campaign, facts = reopen(directory)
    contents, warnings = recorded(directory, campaign)
    found = of(directory, campaign, contents.events)
    for line in warnings:
        print_message(f"warning: {line}")
    if json:
        print_json(found)
        return
    limit = "at most " if found.at_most else ""
    of_total = f" of {limit}{found.total}" if found.total else ""
    sys.stdout.write(
        f"{found.campaign}: {found.state}; {found.finished}{of_total} trials, "
        f"{found.failed} failed, {duration(found.machine_time_s)} of machine time\n"
    )
    if found.left_s:
        sys.stdout.write(f"left: {limit}{duration(found.left_s)} of machine time\n")
    if found.budget_left_s is not None:
        sys.stdout.write(f"budget left: {duration(found.budget_left_s)} of machine time\n")
    if found.state == "running" and found.present:
        sys.stdout.write(f"now: {found.present}\n")
    if found.state == "stopped":
        sys.stdout.write(f"run the same command again to resume: {facts.command}\n")


def _leases(where: str, *, json: bool) -> None:
    host = reach(where)
    leases = leases_of(host)
    text = render_leases(host.name, leases, time())
    if any(one.state == "trial" for one in leases):
        text += f"next: mydyno confirm {where}, or mydyno rollback {where}\n"
    print_result(leases, lambda: text, json=json)


def of(directory: Path, campaign: Campaign, events: list[Event]) -> Status:
    """Return the status of a campaign from its events."""
    done = outcomes(events)
    trial, used_s = open_trial(events), spent_s(events)
    following = campaign.next(done)
    state = "stopped" if following else "finished"
    if held(RunDir(directory).journal):
        state = "running"
    total, at_most = trials_of(campaign, done)
    if following and total is not None:
        total = max(total, following.id + 1)  # it repeats a disturbed one
    budget_s = campaign.design.budget_s
    return Status(
        campaign=campaign.name,
        state=state,
        finished=len(done),
        failed=sum(1 for o in done if o.status.value != "ok"),
        total=len(done) if state == "finished" else total,
        machine_time_s=used_s,
        present=f"{trial.treatment} under {trial.workload}, block {trial.block + 1}"
        if trial
        else None,
        at_most=at_most and state != "finished",
        left_s=0.0 if state == "finished" else left_s(campaign, done),
        budget_left_s=None if budget_s is None else max(budget_s - used_s, 0.0),
    )


def trials_of(campaign: Campaign, done: Sequence[Outcome]) -> tuple[int | None, bool]:
    """Return the number of trials of a campaign and whether it is an upper limit.

    Where the design has no number, its blocks, with all treatments in each, or its budget give it.
    """
    design, soak = campaign.design, 1 if campaign.soak else 0
    limit = design.budget_s is not None or design.total is None or campaign.soak is not None
    costs = Costs(overhead_s(done), 0.0, measured=True) if done else Costs()
    total = schedule(campaign, costs, done, shown=False).trials
    if total is None and design.budget_s is not None:
        total = ceil(design.budget_s / _trial_s(campaign, done))
    return (None, limit) if total is None else (max(total, len(done)) + soak, limit)


def left_s(campaign: Campaign, done: Sequence[Outcome]) -> float | None:
    """Return the machine time in seconds that a campaign is still expected to take at most."""
    total, _ = trials_of(campaign, done)
    if total is None:
        return None
    soak_s = campaign.soak.seconds if campaign.soak else 0.0
    trials = total - len(done) - (1 if campaign.soak else 0)
    most_s = max(trials, 0) * _trial_s(campaign, done)
    if campaign.design.budget_s is not None:
        most_s = min(most_s, campaign.design.budget_s - spent(done))
    return max(most_s, 0.0) + soak_s


def _trial_s(campaign: Campaign, done: Sequence[Outcome]) -> float:
    """Return the mean machine time of the trials so far, or the forecast of one."""
    spent_s = spent(done)
    return spent_s / len(done) if spent_s else campaign.stops.forecast().seconds
