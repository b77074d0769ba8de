"""Choosing the bench of a spec: no server, or a private one on a lab disk or a directory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mydyno.apply import consent, consent_reformat
from mydyno.campaign.bench import Bench, NoServer
from mydyno.campaign.link_traffic import uses_lab_link
from mydyno.campaign.past import KIND
from mydyno.campaign.plan import Campaign
from mydyno.campaign.preflight import (
    busy,
    preflight,
    refuse_network,
    refuse_unprivileged,
    tools,
)
from mydyno.campaign.servers import programs
from mydyno.campaign.spec import DeviceTable
from mydyno.campaign.stores import needed
from mydyno.campaign.stripes import PREFIX
from mydyno.campaign.testbed.bench_setup import CampaignLog, Hosts
from mydyno.campaign.treatments import Environment
from mydyno.cli.hosts import bench_hosts
from mydyno.cli.privatebench import host_layers, is_real, private, without_lab
from mydyno.cli.specs import SpecSource
from mydyno.dataset import existing
from mydyno.host import Host
from mydyno.journal import Prepared
from mydyno.lab import available
from mydyno.lab.vm import VmHost
from mydyno.measure import NOT_BUILT, Facts, cores_busy, facts, probe_binary
from mydyno.model import SpecError
from mydyno.server import Build, find

Opener = Callable[[CampaignLog], Bench]


@dataclass(frozen=True, slots=True)
class Built:
    """A campaign and the environment it was planned for; `open` opens its bench in a run directory.

    `host` holds the facts of `db`, the host with the server; `name` is the server's version text;
    `warnings` are the deviations from the spec.
    """

    campaign: Campaign
    ground: Environment
    db: Host
    host: Facts
    name: str
    lab: str
    warnings: Sequence[str]
    open: Opener


def build(source: SpecSource, allow: Sequence[str], folder: Path) -> Built:
    """Return the campaign of a spec and its bench, to be run in or below `folder`.

    Raises `SpecError` for what this host cannot do, `RefusedError` for what was not allowed.
    """
    spec = source.decode()
    if spec.design.kind == KIND:
        raise SpecError(
            f"{source.place}: design.kind: imported logs cannot be run; use `mydyno compare`"
        )
    hosts = bench_hosts(spec, source.place)
    host = hosts.db
    found = facts(host)
    servers = {
        program: find(host, program) for program in programs(spec, source.place, source.text)
    }
    kinds = {program: (build.flavour, build.version) for program, build in servers.items()}
    flavour, version = next(iter(kinds.values()), ("", ()))
    ground = Environment(
        memory_bytes=found.memory_bytes,
        cores=found.cores,
        flavour=flavour,
        version=version,
        schedulers=found.schedulers,
        servers=kinds if len(kinds) > 1 else {},
    )
    campaign = source.plan(ground)
    if _bare(campaign):
        return Built(campaign, ground, host, found, "", "", (), lambda _: NoServer(hosts.load))
    return _on_a_bench(hosts, campaign, (ground, found), servers, (allow, folder))


def _bare(campaign: Campaign) -> bool:
    """Return whether the campaign needs only load programs and their environment, no server."""
    plain = all(key.startswith("load/") for s in campaign.treatments.values() for key in s)
    programs = all(not w.data_key and not w.needs_server for w in campaign.workloads.values())
    return plain and programs


def _lab(campaign: Campaign, device: DeviceTable) -> str:
    """Return a sentence on what emulated the disk."""
    if device.machine:
        caps = f"the caps of {device.disk_class}" if device.disk_class else "no caps"
        disks = "disk" if device.disks == 1 else f"{device.disks} disks"
        return (
            f"Server and load ran in a virtual machine of this one, its {disks} of {device.size} "
            f"with {caps}{' each' if device.disks > 1 and device.disk_class else ''}."
        )
    tested = any(key.startswith(PREFIX) for s in campaign.treatments.values() for key in s)
    if tested:
        disks = f"{device.disk_class} disks, striped over as many disks as each treatment sets"
    elif device.disks == 1:
        disks = f"one {device.disk_class} disk"
    else:
        disks = f"{device.disks} striped {device.disk_class} disks"
    caps = f"the caps of {disks}" if device.disk_class else "no caps"
    vm = f", all within those of one {device.vm}" if device.vm else ""
    return (
        f"A loop device of {device.size} with {caps}{vm}, burst credits {device.credits}, "
        "emulated the disk. Ratios apply to a real disk of this class better than absolute numbers."
    )


_LINK = (
    "A pair of virtual interfaces between two network namespaces of this host emulated the "
    "network; server and load shared its processors."
)


def _on_a_bench(
    hosts: Hosts,
    campaign: Campaign,
    known: tuple[Environment, Facts],
    servers: Mapping[str, Build],
    allowed: tuple[Sequence[str], Path],
) -> Built:
    (allow, folder), host = allowed, hosts.db
    warnings = [*busy(cores_busy(host))]
    if any(server.flavour == "percona" for server in servers.values()):
        warnings.append("Percona Server is supported from its documentation, but not tested")
    if not probe_binary():
        warnings.append(f"{NOT_BUILT}; until then no trial is sampled")
    lab = campaign.spec.stack.device
    guest = host if isinstance(host, VmHost) else None
    reason = "" if isinstance(lab, str) or guest else available(host)
    if reason:
        campaign, skipped = without_lab(campaign, reason)
        warnings += skipped
    filesystems = {(key.kind, key.mkfs) for key in needed(campaign)}
    if isinstance(lab, str) and is_real(lab):
        consent_reformat(lab, allow)
        if len(filesystems) > 1:
            raise SpecError(
                f"fs.type, fs.mkfs: {lab} can have only one filesystem per campaign; use a lab"
            )
    layers = host_layers(host, campaign, folder)
    consent(campaign.treatments, () if guest else layers, allow)
    refuse_unprivileged(host, layers)
    refuse_network(hosts, campaign)

    def opened(log: CampaignLog) -> Bench:
        files = log.files
        preflight(hosts, campaign.spec, campaign.workloads, files.path)
        if campaign.spec.stack.data and not any(
            isinstance(e, Prepared) for e in log.journal.events()
        ):
            existing.find(host, campaign.spec.stack.data)
        found = tools(hosts, campaign.workloads, files.path)
        (files.facts / "load tool.json").write_bytes(msgspec.json.encode(found))
        return private(hosts, campaign, log, servers, lab=not reason)

    emulated = [] if isinstance(lab, str) or reason else [_lab(campaign, lab)]
    emulated += [guest.vm.emulated] if guest and guest.vm.emulated else []
    emulated += [_LINK] if any(map(uses_lab_link, campaign.treatments.values())) else []
    sentences = " ".join(emulated)
    name = "; ".join(server.text for server in servers.values())
    return Built(campaign, known[0], host, known[1], name, sentences, tuple(warnings), opened)
