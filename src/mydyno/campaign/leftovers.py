"""Restoring settings and removing leftovers of a campaign, from its change records."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from mydyno.apply import release
from mydyno.campaign.workfolder import FOLDER, LOCAL_FOLDER, remove_work
from mydyno.host import Host, Local
from mydyno.journal import Journal, RolledBack, first_values
from mydyno.journal.records import Records, things
from mydyno.lab import down, listing
from mydyno.model import JournalError, MydynoError
from mydyno.server import identity
from mydyno.server import sweep as sweep_servers
from mydyno.stack import Restoration, restore
from mydyno.stack.reopen import layer_of

HOME = "server"  # folder of the first instance; the next are server-2 and so on

Step = Callable[[], tuple[list[str], list[str]]]


@dataclass(slots=True)
class Leftovers:
    """What was removed, and what could not be removed, with the reason; a line each."""

    removed: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)


def restored(host: Host, records: Records, journal: Journal | None) -> Restoration:
    """Restore a campaign's settings and note it in its journal, where there is one."""
    done = restore(host, records, layer_of)
    with suppress(JournalError):  # restoring must not fail for the note
        if journal and not done.failed and (keys := tuple(first_values(journal.events()))):
            journal.append(RolledBack(keys))
    return done


def remove(host: Host, records: Records) -> Leftovers:
    """End servers, lab disks and filesystems of a campaign, and remove its folders.

    Each step runs even if the one before it failed.  Can be called again.
    """
    steps: list[Step] = [partial(sweep_servers, host, records)]
    works = [Path(made.place) for made in things(records.entries(), FOLDER)]
    steps += [partial(_labs, host, work) for work in works]
    steps.append(partial(release, host, records))
    steps.append(partial(remove_work, host, records))
    steps.append(partial(remove_work, Local(), records, kind=LOCAL_FOLDER))
    found = Leftovers()
    for step in steps:
        try:
            removed, failed = step()
        except MydynoError as error:
            removed, failed = [], [str(error)]
        found.removed += removed
        found.failed += failed
    if not found.failed:
        identity.forget(records)
    return found


def _labs(host: Host, work: Path) -> tuple[list[str], list[str]]:
    removed: list[str] = []
    for state in listing(host):
        if Path(state.home).is_relative_to(work):
            removed += down(state.spec.lab, host)
    return removed, []
