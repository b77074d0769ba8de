"""What a private bench needs: hosts, campaign, run directory, stores and layers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mydyno.campaign.plan import Campaign
from mydyno.campaign.rundir import RunDir
from mydyno.campaign.stores import StoreKey, key_of
from mydyno.campaign.workfolder import LOCAL_FOLDER, open_work
from mydyno.dataset import Store
from mydyno.host import Host, Local, Rebootable, Remote
from mydyno.journal import Journal
from mydyno.journal.records import Records
from mydyno.model import Settings
from mydyno.stack import Layer, Ledger, Site
from mydyno.stack.block import Block
from mydyno.workloads import Workload


@dataclass(frozen=True, slots=True)
class Hosts:
    """The hosts of the server and of the load; the same unless the spec names two.

    `address` is the server's address for a load on another host, empty for one on the same host.
    """

    db: Host
    load: Host
    address: str = ""

    def of(self, workload: Workload) -> Host:
        """Return the host a load runs on; a file load runs on the host of its files."""
        return self.load if workload.needs_server or not workload.data_key else self.db

    @property
    def remote(self) -> bool:
        """Return whether one of them does not share the local filesystem."""
        return isinstance(self.db, Remote) or isinstance(self.load, Remote)


@dataclass(frozen=True, slots=True)
class CampaignLog:
    """Where a campaign is recorded: run directory, journal, change records; `say` prints."""

    files: RunDir
    journal: Journal
    records: Records
    say: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class BenchSetup:
    """Hosts, campaign and places; `make` gives the store of a key, not yet open.

    `work` is on the database host.
    """

    hosts: Hosts
    campaign: Campaign
    log: CampaignLog
    work: Path
    make: Callable[[StoreKey], Store]
    host_layers: Sequence[Layer]

    @property
    def files(self) -> RunDir:
        """Return the run directory."""
        return self.log.files

    @property
    def journal(self) -> Journal:
        """Return the campaign's history."""
        return self.log.journal

    @property
    def ledger(self) -> Ledger:
        """Return the ledger in which changes of settings are recorded."""
        return Ledger(self.log.records, self.log.journal)

    def say(self, text: str) -> None:
        """Write a line of progress."""
        self.log.say(text)

    @property
    def host(self) -> Host:
        """Return the database host."""
        return self.hosts.db

    @property
    def outside(self) -> Site:
        """Return the host with the layers that are not made by mydyno."""
        mine = isinstance(self.host, Rebootable)  # a VM lab is removed, not restored
        return Site("db", self.host, () if mine else self.host_layers)

    @property
    def stock(self) -> Settings:
        """Return the baseline's settings."""
        return self.campaign.treatments[self.campaign.baseline]

    def key(self, settings: Settings, workload: Workload) -> StoreKey:
        """Return the data set that a treatment needs under a workload."""
        return key_of(settings, workload, self.campaign.spec.stack)

    def site(self, store: Store) -> Site:
        """Return the host with the layers that are set from outside the server."""
        outside = any(layer.name == "block" for layer in self.host_layers)
        disk = (Block(store.disk, ours=True),) if store.disk and not outside else ()
        return Site("db", self.host, (*disk, *self.host_layers))

    def made(self, name: str) -> Path:
        """Return a private local folder; it is removed with the work folder."""
        above = self.work
        if isinstance(self.host, Remote):
            above = open_work(Local(), self.files.work, self.log.records, kind=LOCAL_FOLDER)
        folder = above / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder
