"""The data sets that a campaign needs: one snapshot for each shape of the data."""

import hashlib
from dataclasses import dataclass

from mydyno.campaign.plan import Campaign
from mydyno.campaign.spec import SETTING as BUILD
from mydyno.campaign.spec import DeviceTable, StackTable, program_of
from mydyno.campaign.treatments import disk_class_of, stripe_of
from mydyno.lab import Stripe
from mydyno.lab.values import RAID_KEYS, mkfs_options
from mydyno.loads import Workload
from mydyno.model import Action, Change, Cost, Settings
from mydyno.stack.doses import CLASS
from mydyno.stack.fs import shaping
from mydyno.stack.known import normalise
from mydyno.stack.protocol import StackSettings, full_key, spec_key
from mydyno.stack.zfs import LOG_FOLDER, LOG_HOME

_SHAPING = frozenset(
    (
        "character_set_server",
        "collation_server",
        "default_storage_engine",
        "default_table_encryption",
        "innodb_checksum_algorithm",
        "innodb_compression_algorithm",
        "innodb_compression_default",
        "innodb_compression_level",
        "innodb_data_file_path",
        "innodb_data_home_dir",
        "innodb_default_row_format",
        "innodb_encrypt_tables",
        "innodb_file_format",
        "innodb_file_per_table",
        "innodb_log_group_home_dir",
        "innodb_page_size",
        "innodb_undo_directory",
        "innodb_undo_tablespaces",
        "lower_case_table_names",
    )
)


def data_shape(settings: Settings) -> Settings:
    """Return the part of bare `mysqld` settings that must hold when the data are made.

    A redo log is moved to a dataset of its own once they are.
    """
    made = {key: normalise(value) for key, value in sorted(settings.items()) if key in _SHAPING}
    return {key: value for key, value in made.items() if (key, value) != (LOG_HOME, LOG_FOLDER)}


@dataclass(frozen=True, slots=True)
class StoreKey:
    """What a data set's bytes depend on: tables, filesystem, stripe, and the server's shape.

    `server` is the program that fills it, empty for files alone.
    `mount` are the mount options that shape files as they are made: copy-on-write, compression.
    `under` are the settings of md and of ZFS for the disks of a virtual machine.  `disk_class` is
    that of a lab disk.
    """

    data: str
    server: str
    kind: str
    mkfs: str
    shape: tuple[tuple[str, str], ...]
    stripe: Stripe
    mount: str = ""
    under: tuple[tuple[str, str], ...] | None = None
    disk_class: str = ""

    @property
    def description(self) -> str:
        """Return the filesystem and its mkfs options: ``xfs -d su=64k,sw=4``."""
        under = (f"{spec_key(k)}={v}" for k, v in self.under or ())
        return " ".join(filter(None, (self.kind, self.mkfs, *under)))

    @property
    def name(self) -> str:
        """Return a short name, the same in every run."""
        return _digest(self)

    @property
    def content(self) -> str:
        """Return a short name of the files alone, without the filesystem."""
        return _digest((self.data, self.server, self.shape))


def key_of(settings: StackSettings, workload: Workload, stack: StackTable) -> StoreKey:
    """Return the data set that a treatment needs under a workload."""
    filesystem, stripe = settings.of("fs"), stripe_of(stack.device, settings)
    kind = filesystem.get("type", "ext4")
    needs = workload.info.needs_server
    beside = f" beside {stack.data}" if stack.data and needs else ""
    shape = tuple(sorted(data_shape(settings.of("mysqld")).items())) if needs else ()
    return StoreKey(
        data=f"{workload.info.data_key}{beside}",
        server=program_of(settings, stack) if workload.info.needs_server else "",
        kind=kind,
        mkfs=mkfs_options(kind, filesystem.get("mkfs", ""), stripe),
        shape=shape,
        stripe=stripe,
        mount=shaping(filesystem.get("mount", "")),
        under=_under(stack.device, settings),
        disk_class=disk_class_of(stack.device, settings),
    )


def _digest(of: object) -> str:
    return hashlib.sha256(repr(of).encode()).hexdigest()[:10]


def _under(
    device: str | DeviceTable, settings: StackSettings
) -> tuple[tuple[str, str], ...] | None:
    if not isinstance(device, DeviceTable) or not device.machine:
        return None
    below = (full_key("raid", ""), full_key("fs", "zfs."))
    return tuple(sorted((k, v) for k, v in settings.items() if k.startswith(below)))


def rebuilt(key: StoreKey, stock: StoreKey) -> list[Change]:
    """Return the change of a treatment on another server than stock, with its own data."""
    if key.server == stock.server:
        return []
    return [Change(BUILD, stock.server, key.server, Action(()), Cost.REFORMAT)]


def reformats(settings: Settings, key: StoreKey, stock: StoreKey) -> list[Change]:
    """Return, as changes, how a treatment's data set differs from stock's.

    Their actions are empty: each data set is on a device made for it before the first trial.
    """

    def shape(key: StoreKey) -> dict[str, str]:
        chunk, disks = str(key.stripe.chunk), str(key.stripe.disks)
        loop = {full_key("raid", k): v for k, v in zip(RAID_KEYS, ("0", chunk, disks), strict=True)}
        under = loop if key.under is None else dict(key.under)
        disk = {full_key("disk", CLASS): key.disk_class} if key.disk_class else {}
        made = {full_key("fs", "type"): key.kind, full_key("fs", "mkfs"): key.mkfs}
        return {**under, **disk, **made}

    now, before = shape(key), shape(stock)
    return [
        Change(k, before.get(k, ""), v, Action(()), Cost.REFORMAT)
        for k, v in now.items()
        if v != before.get(k) or k in settings
    ]


def needed(campaign: Campaign) -> dict[StoreKey, Workload]:
    """Return each data set of a campaign with a workload that can prepare it.

    Those with the fewest settings come first: each server reports its defaults and variables while
    it fills its first data set.
    """
    found: dict[StoreKey, Workload] = {}
    for workload in campaign.workloads.values():
        for settings in campaign.treatments.values():
            found.setdefault(key_of(settings, workload, campaign.spec.stack), workload)
    return dict(sorted(found.items(), key=lambda item: len(item[0].shape)))
