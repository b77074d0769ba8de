"""Putting a private bench together: work folder, server home, stores, host layers."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from mydyno.campaign.bench import Bench
from mydyno.campaign.launching import Launcher
from mydyno.campaign.parts import Parts
from mydyno.campaign.plan import Campaign
from mydyno.campaign.private import PrivateBench
from mydyno.campaign.quantities import size_bytes
from mydyno.campaign.rundir import RunDir
from mydyno.campaign.spec import DeviceTable
from mydyno.campaign.stores import StoreKey, names
from mydyno.dataset import DirectoryStore, Store
from mydyno.dataset.directory import reflinks
from mydyno.host import Host
from mydyno.journal import Journal
from mydyno.lab import LabSpec, Latency
from mydyno.lab.store import LabStore
from mydyno.model import SpecError
from mydyno.server import Build, prepare
from mydyno.server.identity import refuse_unreachable, unprivileged
from mydyno.stack import Layer
from mydyno.stack.block import Block
from mydyno.stack.disk import beneath
from mydyno.stack.fs import Fs
from mydyno.stack.kernel import Kernel

_LAB_ONLY = ("db/block.", "db/fs.")


def host_layers(host: Host, campaign: Campaign, folder: Path) -> Sequence[Layer]:
    """Return the layers that reach beyond what mydyno made.

    Without a lab that includes the disk and the filesystem that `folder` lies on.
    """
    settings = campaign.treatments.values()
    layers: list[Layer] = []
    if isinstance(campaign.spec.stack.device, str):
        there = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
        if names(settings, "db/block."):
            layers.append(Block(beneath(host, there), ours=False))
        if names(settings, "db/fs."):
            layers.append(Fs(str(there), ""))
    keys = names(settings, "db/kernel.")
    return (*layers, Kernel(keys)) if keys else layers


def without_lab(campaign: Campaign, reason: str) -> tuple[Campaign, list[str]]:
    """Return the campaign as it can be on a plain directory, and what that leaves out."""
    kept = {
        name: {k: v for k, v in settings.items() if not k.startswith(_LAB_ONLY)}
        for name, settings in campaign.treatments.items()
    }
    warnings = [f"{reason.rstrip('.')}; so the data is in a plain directory, without caps"]
    for name, settings in campaign.treatments.items():
        skipped = [k.removeprefix("db/") for k in settings if k not in kept[name]]
        if skipped:
            left = "" if kept[name] else "; nothing of it is left, so it is a second STOCK"
            warnings.append(f"{name}: skipped {', '.join(skipped)}{left}")
    return replace(campaign, treatments=kept), warnings


def private(
    host: Host,
    campaign: Campaign,
    record: tuple[RunDir, Journal, Callable[[str], None]],
    server: Build | None,
    *,
    lab: bool,
) -> Bench:
    """Return the bench of a campaign with a server or files of its own."""
    files, journal, say = record
    device = campaign.spec.stack.device
    if isinstance(device, str) and device != "here":
        raise SpecError(f'stack.device: {device!r}: write "here", or {{ lab = "loop", ... }}')
    work = _work(host, files)
    on_lab = device if lab and isinstance(device, DeviceTable) else None
    data = work / "mnt" / "data" if on_lab else work / "data"
    wants = any(w.needs_server for w in campaign.workloads.values())
    instance = prepare(host, server, home=work / "server", data=data) if server and wants else None

    def make(key: StoreKey) -> Store:
        home = work / f"store-{key.name}"
        if on_lab is None:
            return DirectoryStore(host, home, data, reflinks(host, work))
        spec = _lab_spec(on_lab, f"{_word(campaign.name)}-{key.name}")
        return LabStore(host, spec, home, work / "mnt", key.kind, key.mkfs)

    layers = host_layers(host, campaign, files.path)
    parts = Parts(host, campaign, files, journal, work, make, layers, say)
    return PrivateBench(parts, Launcher(host, instance, journal) if instance else None)


def _work(host: Host, files: RunDir) -> Path:
    """Return the work folder: in the run directory, or where the server's user can reach it."""
    identity = unprivileged(host)
    work, elsewhere = work_folders(files)
    _passable(work)
    try:
        refuse_unreachable(host, identity, work)
    except SpecError:
        work.rmdir()
        work = elsewhere
        _passable(work)
    return work


def work_folders(files: RunDir) -> tuple[Path, Path]:
    """Return where a campaign's work folder may be; both are the same in every run."""
    work = files.work.absolute()
    name = hashlib.sha256(str(work).encode()).hexdigest()[:12]
    return work, Path("/var/tmp") / f"mydyno-{name}"  # noqa: S108 - found again on resuming


def _passable(work: Path) -> None:
    """Make a folder that others may pass through: the server runs as a user of its own."""
    work.mkdir(parents=True, exist_ok=True)
    work.chmod(0o755)


def _lab_spec(device: DeviceTable, name: str) -> LabSpec:
    if device.lab != "loop" or device.disks != 1:
        raise SpecError('stack.device: this version knows lab = "loop" with disks = 1')
    micro = 1e-6
    return LabSpec(
        lab=name,
        size=size_bytes(device.size, "stack.device.size"),
        disk_class=device.disk_class,
        credits=device.credits,
        latency=Latency(
            device.read_latency_us * micro,
            device.write_latency_us * micro,
            device.flush_latency_us * micro,
        ),
    )


def _word(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)[:40] or "campaign"
