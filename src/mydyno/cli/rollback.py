"""`mydyno rollback`: the host as it was, after a run that could not put it back itself."""

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from mydyno.apply import rollback as put_back
from mydyno.campaign.leftovers import remove
from mydyno.campaign.lock import host_lock
from mydyno.campaign.plan import Campaign
from mydyno.campaign.rundir import RunDir
from mydyno.campaign.spec import DeviceTable
from mydyno.cli.options import HostOption, Json
from mydyno.cli.private import host_layers, work_folders
from mydyno.cli.specs import reopen
from mydyno.host import LOCAL, Host, Local, reach
from mydyno.journal import FileJournal
from mydyno.lab import InUseError, sweep, sweep_links, vm
from mydyno.stack import Site

Directory = Annotated[
    Path | None, typer.Argument(help="The run directory; without it only leftovers are removed.")
]


def rollback(directory: Directory = None, *, host: HostOption = LOCAL, json: Json = False) -> None:
    """Put back what a campaign moved on its host, and remove what it left behind."""
    campaign = None if directory is None else reopen(directory)[0]
    device = campaign.spec.stack.device if campaign else ""
    if isinstance(device, DeviceTable) and device.machine:
        campaign = None  # what it moved was the machine's, which ended with it
    where = reach(campaign.spec.stack.host if campaign else host)
    held = None
    with host_lock(where):
        done = [*(vm.sweep(where) if isinstance(where, Local) else ()), *sweep_links(where)]
        try:
            done += sweep(where)
        except InUseError as error:  # the campaign's own settings are put back all the same
            held = error
        done = [f"removed: {line}" for line in done]
        if campaign is not None and directory is not None:
            done += _campaign(where, campaign, RunDir(directory))
    if json:
        sys.stdout.write(msgspec.json.encode(done).decode() + "\n")
    else:
        sys.stdout.writelines(f"{line}\n" for line in done or ["nothing to put back"])
    if held is not None:
        raise held


def _campaign(host: Host, campaign: Campaign, files: RunDir) -> list[str]:
    """Put back one campaign's settings, end its server, remove its disks and golden copies."""
    journal = FileJournal(files.journal)
    try:
        moved = put_back(Site("db", host, host_layers(host, campaign, files.path)), journal)
    finally:
        journal.close()
    done = [f"put back: {key}" for key in moved]
    for work in work_folders(host, files):
        done += [f"removed: {line}" for line in remove(host, work)]
    return done + [f"removed: {line}" for line in remove(Local(), files.work)]
