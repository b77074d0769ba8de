"""Run directories of versions without change records: the journal is the only list of changes.

Whoever can write to such a directory can name any setting in it, so the list is printed, and
settings are restored only with the user's consent.
"""

from dataclasses import dataclass, field

from mydyno.campaign.rundir import RunDir
from mydyno.cli.privatebench import host_layers
from mydyno.cli.specs import reopen
from mydyno.host import Host, ask, boot_of
from mydyno.journal import first_values, read
from mydyno.journal.records import Acting, MemoryRecords, Records
from mydyno.journal.register import marked
from mydyno.model import SpecError
from mydyno.stack import Restorable
from mydyno.stack.protocol import IDENTITY

OLD_RECORDS = "old-records"


@dataclass(slots=True)
class Older:
    """The changes in such a journal, as lines, and as records if they may be restored."""

    lines: list[str] = field(default_factory=list)
    records: Records | None = None


def older(host: Host, files: RunDir, named: str, *, allowed: bool) -> Older | None:
    """Return the changes in the journal of a directory without records, None if there are none.

    `named` is the host as the command line names it.  Raises `JournalError` for a directory that
    is no run directory or cannot be read, `SpecError` where its campaign was on another host.
    """
    first = {} if marked(files.path) else first_values(read(files.journal).events)
    if not first:
        return None
    found = Older([f"journal: {key} was {value}" for key, value in first.items()])
    if not allowed:
        found.lines.append(
            f"not restored: {files.path} was written by an older version, and whoever can write "
            f"there can change it; check these lines, then add --allow {OLD_RECORDS}"
        )
        return found
    campaign = reopen(files.path)[0]
    if campaign.spec.stack.host != named:
        there = campaign.spec.stack.host
        raise SpecError(f"{files.path}: its campaign was on {there}; add --host {there}")
    found.records = MemoryRecords()
    for layer in host_layers(host, campaign, files.path):
        prefix = f"db/{layer.name}."
        mine = {k.removeprefix(prefix): v for k, v in first.items() if k.startswith(prefix)}
        if mine:
            now = ask(host, layer.observe())
            found.records.add(
                Acting(
                    role="db",
                    layer=layer.name,
                    at=layer.at if isinstance(layer, Restorable) else "",
                    identity=now.get(IDENTITY, ""),
                    boot=boot_of(host),
                    owned=False,
                    trial=-1,
                    before=mine,
                    wanted=mine,
                )
            )
    return found
