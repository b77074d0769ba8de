"""Choosing the bench a spec asks for: no server, or a private one on a lab disk or a directory."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mydyno.apply import consent
from mydyno.campaign.bench import Bench, NoServer
from mydyno.campaign.plan import Campaign
from mydyno.campaign.preflight import busy, preflight, tools
from mydyno.campaign.rundir import RunDir
from mydyno.campaign.spec import DeviceTable
from mydyno.campaign.treatments import Ground
from mydyno.cli.private import host_layers, private, without_lab
from mydyno.cli.specs import Source
from mydyno.host import Host, Local
from mydyno.journal import Journal
from mydyno.lab import available
from mydyno.measure import NOT_BUILT, Facts, cores_busy, facts, probe_binary, schedulers
from mydyno.model import SpecError
from mydyno.server import Build, find

Opener = Callable[[RunDir, Journal, Callable[[str], None]], Bench]


@dataclass(frozen=True, slots=True)
class Built:
    """A campaign on the ground it was planned for; `open` gives its bench in a run directory.

    `name` is the server's own version text, `warnings` what will not be as the spec asked.
    """

    campaign: Campaign
    ground: Ground
    host: Facts
    name: str
    lab: str
    warnings: Sequence[str]
    open: Opener


def build(source: Source, allow: Sequence[str], folder: Path) -> Built:
    """Return the campaign of a spec and its bench, to be run in or below `folder`.

    Raises `SpecError` for what cannot be here, `RefusedError` for what was not allowed.
    """
    host = Local()
    stack = source.decode().stack
    if (stack.host, stack.load) != ("local", "local"):
        raise SpecError(f'{source.place}: stack.host and stack.load: only "local" is known so far')
    found = facts(host)
    server = None if stack.server == "none" else find(host, stack.server)
    ground = Ground(
        memory_bytes=found.memory_bytes,
        cores=found.cores,
        flavour=server.flavour if server else "",
        version=server.version if server else (),
        schedulers=schedulers(host),
    )
    campaign = source.plan(ground)
    if _bare(campaign):
        return Built(campaign, ground, found, "", "", (), lambda *_: NoServer(host))
    return _on_a_bench(host, campaign, (ground, found), server, (allow, folder))


def _bare(campaign: Campaign) -> bool:
    """Return whether nothing but programs and their own environment is asked for."""
    plain = all(key.startswith("load/") for s in campaign.treatments.values() for key in s)
    programs = all(not w.data_key and not w.needs_server for w in campaign.workloads.values())
    return plain and programs


def _lab(device: DeviceTable) -> str:
    """Return in a sentence what stood in for a real disk."""
    kind = device.disk_class or "no"
    return (
        f"A loop device of {device.size} with the caps of one {kind} disk, burst credits "
        f"{device.credits}, stood in for a real one. Ratios carry over to such a disk better than "
        "absolute numbers."
    )


def _on_a_bench(
    host: Host,
    campaign: Campaign,
    known: tuple[Ground, Facts],
    server: Build | None,
    allowed: tuple[Sequence[str], Path],
) -> Built:
    allow, folder = allowed
    warnings = [*busy(cores_busy(host))]
    if server is not None and server.flavour == "percona":
        warnings.append("Percona Server is handled by its documented differences, but untested")
    if not probe_binary():
        warnings.append(f"{NOT_BUILT}; until then no trial is sampled")
    lab = campaign.spec.stack.device
    reason = "" if isinstance(lab, str) else available(host)
    if reason:
        campaign, skipped = without_lab(campaign, reason)
        warnings += skipped
    consent(campaign.treatments, host_layers(host, campaign, folder), allow)

    def opened(files: RunDir, journal: Journal, say: Callable[[str], None]) -> Bench:
        preflight(host, campaign.spec, campaign.workloads, files.path)
        told = tools(host, campaign.workloads, files.path)
        (files.facts / "load tool.json").write_bytes(msgspec.json.encode(told))
        return private(host, campaign, (files, journal, say), server, lab=not reason)

    told = "" if isinstance(lab, str) or reason else _lab(lab)
    return Built(campaign, *known, server.text if server else "", told, tuple(warnings), opened)
