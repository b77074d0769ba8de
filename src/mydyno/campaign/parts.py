"""What a private bench is made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mydyno.campaign.plan import Campaign
from mydyno.campaign.rundir import RunDir
from mydyno.campaign.stores import StoreKey
from mydyno.dataset import Store
from mydyno.host import Host
from mydyno.journal import Journal
from mydyno.stack import Layer, Site
from mydyno.stack.block import Block


@dataclass(frozen=True, slots=True)
class Parts:
    """Host, campaign and places; `make` gives the store of a key, not yet open."""

    host: Host
    campaign: Campaign
    files: RunDir
    journal: Journal
    work: Path
    make: Callable[[StoreKey], Store]
    host_layers: Sequence[Layer]
    say: Callable[[str], None]

    @property
    def outside(self) -> Site:
        """Return the host with the layers that reach beyond what mydyno made."""
        return Site("db", self.host, self.host_layers)

    def site(self, store: Store) -> Site:
        """Return the host with the layers that are set from outside the server."""
        disk = (Block(store.disk, ours=True),) if store.disk else ()
        return Site("db", self.host, (*disk, *self.host_layers))

    def made(self, name: str) -> Path:
        """Return a folder of the work folder that only we may look into."""
        folder = self.work / name
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return folder
