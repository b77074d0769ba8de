"""`mydyno status`: the progress of a campaign."""

import sys
from pathlib import Path

import msgspec

from mydyno.campaign.plan import Campaign
from mydyno.cli.analysis import recorded, reopen
from mydyno.cli.terminal import Dir, Json, duration, print_json, print_message
from mydyno.journal import Event, held, open_trial, outcomes, spent_s
from mydyno.journal.register import RunDir


class Status(msgspec.Struct, frozen=True):
    """Progress of a campaign; `state` is running, finished or stopped."""

    campaign: str
    state: str
    finished: int
    failed: int
    total: int | None
    machine_time_s: float
    present: str | None


def status(directory: Dir, *, json: Json = False) -> None:
    """Show the progress of a campaign, and what to do next."""
    campaign, _ = reopen(directory)
    contents, warnings = recorded(directory, campaign)
    found = of(directory, campaign, contents.events)
    for line in warnings:
        print_message(f"warning: {line}")
    if json:
        print_json(found)
        return
    of_total = f" of {found.total}" if found.total else ""
    sys.stdout.write(
        f"{found.campaign}: {found.state}; {found.finished}{of_total} trials, "
        f"{found.failed} failed, {duration(found.machine_time_s)} of machine time\n"
    )
    if found.state == "running" and found.present:
        sys.stdout.write(f"now: {found.present}\n")
    if found.state == "stopped":
        sys.stdout.write("run the same `mydyno run` command again to resume\n")


def of(directory: Path, campaign: Campaign, events: list[Event]) -> Status:
    """Return the status of a campaign from its events."""
    done = outcomes(events)
    design, trial = campaign.design, open_trial(events)
    state = "stopped" if design.next(done) else "finished"
    if held(RunDir(directory).journal):
        state = "running"
    return Status(
        campaign=campaign.name,
        state=state,
        finished=len(done),
        failed=sum(1 for o in done if o.status.value != "ok"),
        total=design.total,
        machine_time_s=spent_s(events),
        present=f"{trial.treatment} under {trial.workload}, block {trial.block + 1}"
        if trial
        else None,
    )
