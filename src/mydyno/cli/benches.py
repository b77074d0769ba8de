"""Choosing the bench of a spec: no server, or a private one on a lab disk or a directory."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from mydyno.campaign.bench import Bench, NoServer
from mydyno.campaign.plan import Campaign, Resolved, resolve, runs
from mydyno.campaign.spec import EXISTING, DeviceTable, Spec, StackTable, located, programs
from mydyno.campaign.treatments import Environment
from mydyno.cli.audit import gathered
from mydyno.cli.recipes import SpecSource
from mydyno.cli.run_directory import begun_on
from mydyno.cli.terminal import print_message
from mydyno.host import Host, Remote, ask, reach
from mydyno.journal import Prepared
from mydyno.keep.refusals import managers
from mydyno.lab import available, refuse_unknown_class
from mydyno.lab.values import check as check_lab
from mydyno.model import RefusedError, SpecError
from mydyno.sample import NOT_BUILT, Facts, cores_busy, facts, probe_binary
from mydyno.server import Build, find
from mydyno.server.existing import Existing, reached
from mydyno.snapshot import existing as existing_data
from mydyno.stack.doses import CLASS, CREDITS
from mydyno.stack.launch_file import refuse_of_load
from mydyno.stack.link import uses_lab_link
from mydyno.testbed.assemble import host_layers, is_real, lab_spec, private, without_lab
from mydyno.testbed.bench_setup import CampaignLog, Hosts
from mydyno.testbed.existing_bench import CONSENT, ExistingBench, refuse_foreign
from mydyno.testbed.existing_bench import refuse as refuse_unfit
from mydyno.testbed.labs import LabHost, lab_kind
from mydyno.testbed.preflight import (
    busy,
    consent,
    consent_reformat,
    preflight,
    refuse_connections,
    refuse_host_settings,
    refuse_network,
    refuse_settings,
    refuse_unprivileged,
    tools,
)
from mydyno.testbed.stores import needed


def bench_hosts(spec: Spec, place: str) -> Hosts:
    """Return the hosts of a spec; a machine of its lab is booted, and removed at exit."""
    device = spec.stack.device
    if not isinstance(device, DeviceTable) or not device.machine:
        return hosts_of(spec.stack, place)
    try:
        kind = lab_kind(device.lab)
    except SpecError as error:
        raise SpecError(f"{place}: stack.device: {error}") from error
    guest = kind.boot(spec, place, print_message)
    return Hosts(guest, guest)


def hosts_of(stack: StackTable, place: str) -> Hosts:
    """Return the hosts that ``[stack]`` names; raise `SpecError` for an invalid one.

    A load on another host connects to the server at `address`, by default the address by which
    one host reaches the other.
    """
    try:
        db = reach(stack.host)
        same = stack.load in {"", stack.host}
        load = db if same else reach(stack.load)
    except SpecError as error:
        raise SpecError(f"{place}: stack.host or stack.load: {error}") from error
    if same and stack.address:
        raise SpecError(
            f"{place}: stack.address: needs a load on another host; set stack.load, or remove it"
        )
    return Hosts(db, load, "" if same else stack.address or _between(db, load, place))


def _between(db: Host, load: Host, place: str) -> str:
    """Return the server's address as the load host should see it."""
    found = ""
    if isinstance(db, Remote):
        found = db.addresses()[1]
    elif isinstance(load, Remote):
        found = load.addresses()[0]
    if not found:
        raise SpecError(
            f"{place}: stack.address is missing; set the server's address for the load host"
        )
    return found


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


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of a campaign's host before its first trial; `servers` by program."""

    ground: Environment
    facts: Facts
    servers: Mapping[str, Build]
    existing: Existing | None = None


def build(
    source: SpecSource, allow: Sequence[str], folder: Path, *, planned: bool = False
) -> Built:
    """Return the campaign of a spec and its bench, to be run in `folder`.

    With `planned` nothing of a running server is set, not even to the value that it has.  Raises
    `SpecError` for what this host cannot do, `RefusedError` for what was not allowed.
    """
    spec = source.decode()
    if not runs(spec):
        raise SpecError(
            f"{source.place}: design.kind: imported logs cannot be run; use `mydyno compare`"
        )
    try:
        hosts = bench_hosts(spec, source.place)
    except SpecError as error:
        raise SpecError(located(str(error), source.place, source.text)) from error
    host = hosts.db
    known = _known(host, source)
    if not planned:
        known = replace(known, ground=begun_on(folder, known.ground))
    ground, found = known.ground, known.facts
    campaign = source.plan(ground)
    for name, settings in campaign.treatments.items():
        refuse_of_load(name, settings.of("env", "load"))
    if _bare(campaign):
        return Built(campaign, ground, host, found, "", "", (), lambda _: NoServer(hosts.load))
    try:
        if known.existing:
            return _on_an_existing_server(
                hosts, campaign, known, known.existing, allow, planned=planned
            )
        return _on_a_bench(hosts, campaign, known, allow, folder)
    except SpecError as error:
        reason = f"{source.place}: {error}"
        raise SpecError(located(reason, source.place, source.text)) from error


def resolved_spec(source: SpecSource, folder: Path) -> tuple[Spec, Resolved]:
    """Return a spec and what it names on its host; raise `SpecError`.

    Shares of memory are of what the host had when the run in `folder` began.
    """
    spec = source.decode()
    ground = begun_on(folder, _known(reach(spec.stack.host), source).ground)
    return spec, resolve(spec, source.text, source.place, ground)


def _known(host: Host, source: SpecSource) -> _Known:
    spec = source.decode()
    found = facts(host)
    servers = {
        program: _find(host, program, source)
        for program in programs(spec, source.place, source.text)
    }
    kinds = {program: (build.flavour, build.version) for program, build in servers.items()}
    flavour, version = next(iter(kinds.values()), ("", ()))
    existing = None
    if spec.stack.server.startswith(EXISTING):
        existing = reached(host, spec.stack.server.removeprefix(EXISTING))
        flavour, version = existing.flavour, existing.version
    ground = Environment(
        memory_bytes=found.memory_bytes,
        cores=found.cores,
        flavour=flavour,
        version=version,
        schedulers=found.schedulers,
        servers=kinds if len(kinds) > 1 else {},
    )
    return _Known(ground, found, servers, existing)


def _find(host: Host, program: str, source: SpecSource) -> Build:
    """Return the build of a server program; an error has the line that names it first."""
    try:
        return find(host, program)
    except (SpecError, RefusedError) as error:
        lines = enumerate(source.text.splitlines(), start=1)
        line = next((f":{n}" for n, text in lines if f'"{program}"' in text), "")
        raise type(error)(f"{source.place}{line}: {error}") from error


def _bare(campaign: Campaign) -> bool:
    """Return whether the campaign needs only load programs and their environment, no server."""
    plain = all(key.startswith("load/") for s in campaign.treatments.values() for key in s)
    programs = all(
        not w.info.data_key and not w.info.needs_server for w in campaign.workloads.values()
    )
    return plain and programs


def _lab(campaign: Campaign, device: DeviceTable) -> str:
    """Return a sentence on what emulated the disk."""
    varied = any(CREDITS in settings.of("disk") for settings in campaign.treatments.values())
    credits_ = f"burst credits {'as each treatment sets them' if varied else device.credits}"
    if device.machine:
        caps = f"the caps of {device.disk_class}" if device.disk_class else "no caps"
        disks = "disk" if device.disks == 1 else f"{device.disks} disks"
        return (
            f"Server and load ran in a virtual machine of this one, its {disks} of {device.size} "
            f"with {caps}{' each' if device.disks > 1 and device.disk_class else ''}, {credits_}."
        )
    tested = any(settings.of("raid") for settings in campaign.treatments.values())
    classes = any(CLASS in settings.of("disk") for settings in campaign.treatments.values())
    if classes:
        disks = "the class of each treatment"
    elif tested:
        disks = f"{device.disk_class} disks, striped over as many disks as each treatment sets"
    elif device.disks == 1:
        disks = f"one {device.disk_class} disk"
    else:
        disks = f"{device.disks} striped {device.disk_class} disks"
    caps = f"the caps of {disks}" if device.disk_class or classes else "no caps"
    vm = f", all within those of one {device.vm}" if device.vm else ""
    return (
        f"A loop device of {device.size} with {caps}{vm}, {credits_}, "
        "emulated the disk. Ratios apply to a real disk of this class better than absolute numbers."
    )


_LINK = (
    "A pair of virtual interfaces between two network namespaces of this host emulated the "
    "network; server and load shared its processors."
)


def _warnings(host: Host) -> list[str]:
    found = [*busy(cores_busy(host))]
    if not probe_binary():
        found.append(f"{NOT_BUILT}; until then no trial is sampled")
    return found


def _on_an_existing_server(
    hosts: Hosts,
    campaign: Campaign,
    known: _Known,
    existing: Existing,
    allow: Sequence[str],
    *,
    planned: bool,
) -> Built:
    """Return the bench on a running server that is not ours, by explicit consent only."""
    options = campaign.spec.stack.server.removeprefix(EXISTING)
    if CONSENT not in allow:
        raise RefusedError(
            f"stack.server: {options} is a server that is not ours, and variables would be set "
            f"there while it runs; add --allow {CONSENT} to consent (first values are restored)"
        )
    layer = refuse_unfit(campaign, existing, options, planned=planned)
    seen = gathered(existing, 0)
    if found := managers(seen):
        raise RefusedError(f"{hosts.db.name}: {found[0]} manages the server; test on a copy")
    if seen.replica:
        raise RefusedError(
            f"{hosts.db.name}: the server is a replica, and would have rows and transactions that "
            "its source has not; test on a copy"
        )
    refuse_foreign(existing)

    def opened(log: CampaignLog) -> Bench:
        found = tools(hosts, campaign.workloads)
        (log.files.facts / "load tool.json").write_bytes(msgspec.json.encode(found))
        return ExistingBench(hosts, campaign, log, existing, layer)

    warnings = _warnings(hosts.db)
    return Built(
        campaign, known.ground, hosts.db, known.facts, existing.text, "", tuple(warnings), opened
    )


def _refuse_device(campaign: Campaign) -> None:
    """Raise `SpecError` for a device that does not exist, or a lab disk that cannot be made."""
    device = campaign.spec.stack.device
    if isinstance(device, str):
        if device != "here" and not is_real(device):
            raise SpecError(
                f'stack.device: {device!r}: write "here", "/dev/DISK", or {{ lab = "loop", ... }}'
            )
        return
    if device.machine:
        return  # its lab has validated it, before the machine was booted
    for name in ("kernel", "memory", "cores"):
        if getattr(device, name):
            raise SpecError(f'stack.device.{name}: valid with lab = "vm" only; remove it')
    for key in needed(campaign):
        refuse_unknown_class(key.disk_class, device.vm)
        try:
            check_lab(lab_spec(device, "lab", key))
        except SpecError as error:
            raise SpecError(f"stack.device: {str(error).removeprefix('stack.device: ')}") from error


def _on_a_bench(
    hosts: Hosts,
    campaign: Campaign,
    known: _Known,
    allow: Sequence[str],
    folder: Path,
) -> Built:
    host, servers = hosts.db, known.servers
    _refuse_device(campaign)
    refuse_settings(host, campaign, servers)
    warnings = _warnings(host)
    lab = campaign.spec.stack.device
    guest = host if isinstance(host, LabHost) else None
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
    refuse_connections(campaign)
    refuse_network(hosts, campaign)
    for layer in layers:
        refuse_host_settings(host, layer, ask(host, layer.observe()), campaign.treatments)
    preflight(hosts, campaign, folder)

    def opened(log: CampaignLog) -> Bench:
        files = log.files
        if campaign.spec.stack.data and not any(
            isinstance(e, Prepared) for e in log.journal.events()
        ):
            existing_data.find(host, campaign.spec.stack.data)
        found = tools(hosts, campaign.workloads)
        (files.facts / "load tool.json").write_bytes(msgspec.json.encode(found))
        return private(hosts, campaign, log, servers)

    emulated = [] if isinstance(lab, str) or reason else [_lab(campaign, lab)]
    emulated += [guest.emulated] if guest and guest.emulated else []
    emulated += [_LINK] if any(map(uses_lab_link, campaign.treatments.values())) else []
    sentences = " ".join(emulated)
    name = "; ".join(server.description for server in servers.values())
    found = known.facts
    return Built(campaign, known.ground, host, found, name, sentences, tuple(warnings), opened)
