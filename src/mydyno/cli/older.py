"""Run directories of versions without change records: only their journal says what was changed.

Whoever can write to such a directory can name any setting in it, so it is shown, and acted on only
with the user's word.
"""

from dataclasses import dataclass, field

from mydyno.campaign.rundir import RunDir
from mydyno.cli.private import host_layers
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
    """What such a directory says was changed, and records of it where they may be acted on."""

    lines: list[str] = field(default_factory=list)
    records: Records | None = None


def older(host: Host, files: RunDir, named: str, *, allowed: bool) -> Older | None:
    """Return what the journal of a directory without records says is still changed, if anything.

    `named` is the host as the command line names it.  Raises `JournalError` for a directory that
    is no run directory or cannot be read, `SpecError` where its campaign was on another host.
    """
    first = {} if marked(files.path) else first_values(read(files.journal).events)
    if not first:
        return None
    found = Older([f"the journal says: {key} was {value}" for key, value in first.items()])
    if not allowed:
        found.lines.append(
            f"not acted on: {files.path} was written by an older version, and whoever can write "
            f"there can change it; look at these lines, then add --allow {OLD_RECORDS}"
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
