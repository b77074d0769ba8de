"""Which data sets a campaign needs: one golden copy for each shape of the data."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from mydyno.campaign.plan import Campaign
from mydyno.model import Settings
from mydyno.stack.known.shape import data_shape
from mydyno.workloads import Workload


@dataclass(frozen=True, slots=True)
class StoreKey:
    """What a data set's bytes depend on: the load's tables, the filesystem, the server's shape."""

    data: str
    server: bool
    kind: str
    mkfs: str
    shape: tuple[tuple[str, str], ...]

    @property
    def name(self) -> str:
        """Return a short name, the same in every run."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:10]


def key_of(settings: Settings, workload: Workload) -> StoreKey:
    """Return the data set that a treatment needs under a workload."""
    mysqld = strip(settings, "db/mysqld.")
    shape = tuple(sorted(data_shape(mysqld).items())) if workload.needs_server else ()
    return StoreKey(
        data=workload.data_key,
        server=workload.needs_server,
        kind=settings.get("db/fs.type", "ext4"),
        mkfs=settings.get("db/fs.mkfs", ""),
        shape=shape,
    )


def needed(campaign: Campaign) -> dict[StoreKey, Workload]:
    """Return each data set of a campaign with a workload that can prepare it, plainest first.

    The server that fills the first one is asked what it knows: it should run at its defaults.
    """
    found: dict[StoreKey, Workload] = {}
    for workload in campaign.workloads.values():
        for settings in campaign.treatments.values():
            found.setdefault(key_of(settings, workload), workload)
    return dict(sorted(found.items(), key=lambda item: len(item[0].shape)))


def strip(settings: Settings, prefix: str) -> dict[str, str]:
    """Return the settings whose keys begin with `prefix`, without it."""
    return {k.removeprefix(prefix): v for k, v in settings.items() if k.startswith(prefix)}


def names(settings: Iterable[Settings], prefix: str) -> tuple[str, ...]:
    """Return every key below `prefix` in any of the settings, without it, sorted."""
    return tuple(sorted({key for s in settings for key in strip(s, prefix)}))
