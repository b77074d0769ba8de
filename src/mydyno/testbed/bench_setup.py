"""What a private bench needs: hosts, campaign, run directory, stores and layers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mydyno.campaign.plan import Campaign
from mydyno.host import Host, Local, Rebootable, Remote, ask
from mydyno.journal import Journal
from mydyno.journal.records import Records
from mydyno.journal.register import RunDir, marked
from mydyno.loads import Workload
from mydyno.model import DriftError, HostError, Settings
from mydyno.server import Build, Instance
from mydyno.snapshot import Store
from mydyno.stack import Layer, LayerPlan, Ledger, Site, mysqld
from mydyno.stack.alloc import installed
from mydyno.stack.block import Block
from mydyno.stack.fs import Fs, missing, probe_atime, wanted_atime
from mydyno.stack.known.variables import Variable, describe
from mydyno.stack.layers import ServerKind, ServerPlace, server_layers
from mydyno.stack.protocol import StackSettings, full_key
from mydyno.testbed.lock import LOCAL_FOLDER, open_work, restored, withdraw
from mydyno.testbed.stores import StoreKey, key_of


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
        info = workload.info
        return self.load if info.needs_server or not info.data_key else self.db

    @property
    def remote(self) -> bool:
        """Return whether one of them does not share the local filesystem."""
        return isinstance(self.db, Remote) or isinstance(self.load, Remote)


@dataclass(frozen=True, slots=True)
class CampaignLog:
    """Where a campaign is recorded: run directory, journal, change records; `say` prints.

    `refuse` raises an error for a host that is not to be changed now; once its lock is held, nobody
    else begins to.
    """

    files: RunDir
    journal: Journal
    records: Records
    say: Callable[[str], None]
    refuse: Callable[[], object] = lambda: None

    @property
    def ledger(self) -> Ledger:
        """Return the ledger in which changes of settings are recorded."""
        return Ledger(self.records, self.journal)

    def restore(self, host: Host, what: str = "settings") -> None:
        """Restore what was changed on a host; raise `HostError` where something is not."""
        found = restored(host, self.records, self.journal)
        for line in found.lines:
            self.say(line)
        if found.failed:
            raise HostError(
                f"{host.name}: {len(found.failed)} {what} are not restored; correct what is named "
                f"above, then run `mydyno rollback {self.files.path}`"
            )
        withdraw(host, marked(self.files.path))


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
    def host(self) -> Host:
        """Return the database host."""
        return self.hosts.db

    @property
    def outside(self) -> Site:
        """Return the host with the layers that are not made by mydyno."""
        mine = isinstance(self.host, Rebootable)  # a VM lab is removed, not restored
        return Site("db", self.host, () if mine else self.host_layers)

    @property
    def stock(self) -> StackSettings:
        """Return the baseline's settings."""
        return self.campaign.treatments[self.campaign.rule.baseline]

    def key(self, settings: StackSettings, workload: Workload) -> StoreKey:
        """Return the data set that a treatment needs under a workload."""
        return key_of(settings, workload, self.campaign.spec.stack)

    def site(self, store: Store) -> Site:
        """Return the host with the layers that are set from outside the server."""
        outside = any(layer.name == "block" for layer in self.host_layers)
        place = store.place
        disk = (Block(place.disk, owned=True),) if place.disk and not outside else ()
        return Site("db", self.host, (*disk, *place.layers, *self.host_layers))

    def made(self, name: str) -> Path:
        """Return a private local folder; it is removed with the work folder."""
        above = self.work
        if isinstance(self.host, Remote):
            above = open_work(Local(), self.log.files.work, self.log.records, kind=LOCAL_FOLDER)
        folder = above / name
        folder.mkdir(mode=0o700, exist_ok=True)
        return folder


_DESCRIBE_S = 120.0  # MySQL needs six hundred statements to find its dynamic variables


@dataclass(frozen=True, slots=True)
class ServerLayers:
    """The layers of a private server, and their default settings by layer."""

    layers: Sequence[Layer]
    stock: Mapping[str, Settings]

    @property
    def defaults(self) -> Settings:
        """Return the default settings by full key."""
        return {full_key(n, k): v for n, stock in self.stock.items() for k, v in stock.items()}

    def plan(self, want: StackSettings) -> list[LayerPlan]:
        """Return the changes from the defaults; raise `SpecError` for an unknown setting."""
        return [
            LayerPlan(layer, layer.plan(self.stock.get(layer.name, {}), want.of(layer.name)))
            for layer in self.layers
        ]

    def verify(self, host: Host, want: StackSettings) -> None:
        """Raise `DriftError` where the running server does not have the wanted settings."""
        left = []
        for layer in self.layers:
            mine = want.of(layer.name)
            if mine:
                now = ask(host, layer.observe())
                left += [
                    f"{layer.name}.{c.key} is {c.before}, not {c.after}"
                    for c in layer.plan(now, mine)
                    if c.key in mine
                ]
        if left:
            raise DriftError(f"the running server differs from its treatment: {'; '.join(left)}")


def server_kind(
    build: Build, variables: Mapping[str, Variable], stock: Settings | None = None
) -> ServerKind:
    """Return a server program as layers see it."""
    return ServerKind(
        build.flavour, build.version, variables, stock or {}, build.tls, build.allocator
    )


def read_defaults(instance: Instance, link: str = "") -> ServerLayers:
    """Return the layers and defaults of a server that runs with its default settings.

    The order is that in which they take effect.  `link` is its address on the lab link, if any.
    """
    place, host, build = instance.place, instance.host, instance.build
    stock = ask(host, mysqld.observe(instance.client, place.owned))
    description = describe(instance.client, build.flavour, build.version, stock)
    variables = ask(host, description, timeout_s=_DESCRIBE_S)
    there = ServerPlace(
        server_kind(build, variables, stock),
        client=instance.client,
        launch=place.launch,
        pid_file=place.pid_file,
        options=place.options,
        owned=place.owned,
        link=link,
        libraries=ask(host, installed()),
    )
    layers = server_layers(there)
    return ServerLayers(layers, {layer.name: ask(host, layer.observe()) for layer in layers})


def fs_layer(store: Store) -> Fs:
    """Return the filesystem layer of a store."""
    place = store.place
    if place.disk:
        return Fs(str(place.live.parent), f"/dev/{place.disk}")
    return Fs(str(place.live), "")


def verify_mount(host: Host, layer: Fs, options: str) -> None:
    """Raise `DriftError` where a mount lacks its options, or access times contradict them."""
    if left := missing(ask(host, layer.observe())["mount"], options):
        raise DriftError(f"{layer.where}: mounted without {', '.join(left)}")
    wanted = wanted_atime(options)
    if wanted and (found := ask(host, probe_atime(layer.where))) != wanted:
        raise DriftError(
            f"{layer.where}: mounted with {wanted}, but access times behave as with {found}"
        )
