"""Choosing the bench a spec asks for: no server, or a private one on a lab disk or a directory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mydyno.campaign.bench import Bench, NoServer
from mydyno.campaign.plan import Campaign
from mydyno.campaign.rundir import RunDir
from mydyno.campaign.treatments import Ground
from mydyno.cli.specs import Source
from mydyno.host import Host, Local
from mydyno.journal import Journal
from mydyno.measure import Facts, facts


@dataclass(frozen=True, slots=True)
class Built:
    """A campaign and the bench it runs on; `prepare` must be called before its trials."""

    campaign: Campaign
    ground: Ground
    bench: Bench
    name: str
    prepare: Callable[[RunDir, Journal], None]


def build(source: Source, allow: Sequence[str]) -> Built:
    """Return the campaign of a spec on its bench; raise `SpecError` for what cannot be had here."""
    host = Local()
    found = facts(host)
    ground = Ground(found.memory_bytes, found.cores)
    del allow
    return _without_server(source, ground, host, found)


def _without_server(source: Source, ground: Ground, host: Host, found: Facts) -> Built:
    del found
    return Built(source.plan(ground), ground, NoServer(host), "", lambda *_: None)
