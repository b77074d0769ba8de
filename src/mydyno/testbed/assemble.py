"""Assembles the bench of a campaign with a private server: work folder, home, stores, layers."""

import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from mydyno.campaign.bench import Bench
from mydyno.campaign.plan import Campaign
from mydyno.campaign.spec import DeviceTable
from mydyno.host import Host, Remote, disk_named
from mydyno.host.files import distrust
from mydyno.lab import LabSpec, Latency, Spinner
from mydyno.lab.lab_link import planned
from mydyno.lab.lab_store import LabStore
from mydyno.model import Action, RefusedError
from mydyno.model.text import size_bytes
from mydyno.server import Build, Instance, prepare
from mydyno.server.place import unprivileged
from mydyno.snapshot import DirectoryStore, Store
from mydyno.snapshot.device import DeviceStore, RealDevice
from mydyno.stack import Layer
from mydyno.stack.cpus import apart
from mydyno.stack.doses import Slow
from mydyno.stack.layers import HostPlace, Scope, kind_of, layers, of_scope
from mydyno.stack.link import uses_lab_link
from mydyno.stack.protocol import keys_of, place_of, spec_key, split
from mydyno.testbed.bench_setup import BenchSetup, CampaignLog, Hosts
from mydyno.testbed.calibrated_link import CalibratedLink
from mydyno.testbed.labs import LabHost
from mydyno.testbed.lock import HOME, REMOTE_ROOT, open_work
from mydyno.testbed.preflight import beneath, existing_parent, mount_point
from mydyno.testbed.private_bench import PrivateBench
from mydyno.testbed.replica import DATA as REPLICA_DATA
from mydyno.testbed.replica import HOME as REPLICA_HOME
from mydyno.testbed.replica import Replica
from mydyno.testbed.server_runner import ServerRunner
from mydyno.testbed.stores import StoreKey, needed


def host_layers(host: Host, campaign: Campaign, folder: Path) -> Sequence[Layer]:
    """Return the layers that change the host outside of what mydyno created.

    Without a lab that includes the disk and the filesystem that `folder` lies on.
    """
    settings = campaign.treatments.values()
    device = campaign.spec.stack.device
    scopes = {Scope.HOST, Scope.DISK} if isinstance(device, str) else {Scope.HOST}
    found: list[Layer] = []
    for name, kind in layers().items():
        keys = keys_of(settings, name)
        if keys and kind.scope in scopes:
            layer = kind.on_host(_host_place(host, device, folder, keys))
            found += [layer] if layer else []
    return found


def _host_place(
    host: Host, device: str | DeviceTable, folder: Path, keys: tuple[str, ...]
) -> HostPlace:
    """Return the disk below `folder` and its mount point, or the real device of the spec."""
    if is_real(device):
        return HostPlace(keys, lambda: disk_named(host, str(device)))
    there = existing_parent(host, folder)
    return HostPlace(keys, lambda: beneath(host, there), lambda: mount_point(host, there))


def without_lab(campaign: Campaign, reason: str) -> tuple[Campaign, list[str]]:
    """Return the campaign without lab settings, for a plain directory, and warnings.

    Raises `RefusedError` where its treatments differ in nothing else.
    """
    possible = {
        name: split({k: v for k, v in settings.items() if not _of_disk(k)})
        for name, settings in campaign.treatments.items()
    }
    warnings = [f"{reason.rstrip('.')}; the data is in a plain directory, without caps"]
    for name, settings in campaign.treatments.items():
        skipped = [spec_key(k) for k in settings if k not in possible[name]]
        if skipped:
            left = "" if possible[name] else "; no setting is left, so it equals STOCK"
            warnings.append(f"{name}: skipped {', '.join(skipped)}{left}")
    both = (campaign.treatments, possible)
    asked, had = ({frozenset(each.items()) for each in of.values()} for of in both)
    if len(asked) > 1 == len(had):
        raise RefusedError(f"{reason.rstrip('.')}; without a lab the treatments are all the same")
    stack = msgspec.structs.replace(campaign.spec.stack, device="here")
    spec = msgspec.structs.replace(campaign.spec, stack=stack)
    return replace(campaign, treatments=possible, spec=spec), warnings


def _of_disk(key: str) -> bool:
    """Return whether a full key is of what a lab makes: its disks, what is on them."""
    return of_scope(key, Scope.DISK) or (key.startswith("db/") and kind_of(key)[0].needs.lab)


def private(
    hosts: Hosts, campaign: Campaign, log: CampaignLog, servers: Mapping[str, Build]
) -> Bench:
    """Return the bench of a campaign with a server or files of its own."""
    device = campaign.spec.stack.device
    host = hosts.db
    work = _work(host, log)
    on_lab = device if isinstance(device, DeviceTable) else None
    make = _maker(host, campaign, log, work, on_lab)
    crossed = any(map(uses_lab_link, campaign.treatments.values()))
    delayed = any("delay" in settings.of("link") for settings in campaign.treatments.values())
    lab_link = (
        CalibratedLink(planned(host, work / "wire" if delayed else None)) if crossed else None
    )
    slowed = [s for s in campaign.treatments.values() if s.of("slow")]
    spinner = Spinner(host, work / "spin", roles=apart(slowed[0])) if slowed else None
    layers = [*_grounded(host, campaign, log, work), *([lab_link.layer] if lab_link else [])]
    layers += [Slow(spinner.folder)] if spinner else []
    setup = BenchSetup(hosts, campaign, log, work, make, layers)
    link = lab_link.link.state.address if lab_link else ""
    data = (work / "mnt" if on_lab or is_real(device) else work) / "data"
    runners = {
        program: ServerRunner(host, instance, setup.log.ledger, link=link)
        for program, instance in _instances(hosts, campaign, (work, data), servers, log).items()
    }
    for runner in runners.values() if campaign.spec.stack.replicated else ():
        places, build = (work / REPLICA_HOME, data.with_name(REPLICA_DATA)), runner.instance.build
        follower = prepare(host, build, places=places, records=log.records)
        runner.replica = Replica(runner.instance, follower)
    return PrivateBench(setup, runners, lab_link, spinner)


def _grounded(host: Host, campaign: Campaign, log: CampaignLog, work: Path) -> Sequence[Layer]:
    """Return the host's layers; raise `RefusedError` where they are not those below the data."""
    layers = host_layers(host, campaign, work)
    meant = host_layers(host, campaign, log.files.path)
    if [*map(place_of, layers)] != [*map(place_of, meant)]:
        raise RefusedError(
            f"{log.files.path}: the server's user has no access to it, so the data would be in "
            f"{work}, on another filesystem than the one to change; choose another directory "
            "with -o"
        )
    return layers


def _instances(
    hosts: Hosts,
    campaign: Campaign,
    places: tuple[Path, Path],
    servers: Mapping[str, Build],
    log: CampaignLog,
) -> dict[str, Instance]:
    """Return a server for each program that a load needs, a home each, their data in one place."""
    if not any(w.info.needs_server for w in campaign.workloads.values()):
        return {}
    work, data = places
    return {
        program: prepare(
            hosts.db,
            build,
            places=(work / (f"{HOME}-{number}" if number > 1 else HOME), data),
            records=log.records,
            address=hosts.address,
            original=campaign.spec.stack.data,
        )
        for number, (program, build) in enumerate(servers.items(), 1)
    }


def _maker(
    host: Host, campaign: Campaign, log: CampaignLog, work: Path, on_lab: DeviceTable | None
) -> Callable[[StoreKey], Store]:
    """Return what makes a data set: on a real disk, a machine's, a lab's, or in a folder."""
    device, mounted = campaign.spec.stack.device, work / "mnt"
    if is_real(device):
        real = RealDevice(host, str(device), mounted, log.records)
        return lambda key: DeviceStore(
            real,
            key.kind,
            key.mkfs,
            DirectoryStore(host, mounted / f"store-{key.name}", mounted / "data"),
        )
    if isinstance(host, LabHost):
        alone = len(needed(campaign)) == 1
        return lambda key: host.store(key, work / f"golden-{key.content}", mounted, alone=alone)

    def local(key: StoreKey) -> Store:
        home = work / f"store-{key.name}"
        if on_lab is None:
            return DirectoryStore(host, home, work / "data")
        spec = lab_spec(on_lab, f"{_word(campaign.name)}-{key.name}", key)
        return LabStore(host, spec, home, mounted, key.kind, key.mkfs, key.mount)

    return local


def is_real(device: object) -> bool:
    """Return whether a spec's device is a real one, to be formatted."""
    return isinstance(device, str) and device.startswith("/dev/")


def _work(host: Host, log: CampaignLog) -> Path:
    """Return the work folder: in the run directory, or where the server's user can reach it."""
    inside = log.files.work
    passes = Action((*unprivileged(host, log.records).drop(), "test", "-x", str(inside.parent)))
    reachable = (
        not isinstance(host, Remote)
        and not distrust(host, inside.parent)
        and host.run(passes).returncode == 0
    )
    elsewhere = REMOTE_ROOT / f"mydyno-{secrets.token_hex(8)}"
    return open_work(host, inside if reachable else elsewhere, log.records)


def lab_spec(device: DeviceTable, name: str, key: StoreKey) -> LabSpec:
    """Return the loop lab of a device table, of the class and stripe that a treatment wants."""
    micro = 1e-6
    return LabSpec(
        lab=name,
        size=size_bytes(device.size, "stack.device.size"),
        disk_class=key.disk_class,
        credits=device.credits,
        latency=Latency(
            device.read_latency_us * micro,
            device.write_latency_us * micro,
            device.flush_latency_us * micro,
        ),
        stripe=key.stripe,
        vm=device.vm,
    )


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:40] or "campaign"
