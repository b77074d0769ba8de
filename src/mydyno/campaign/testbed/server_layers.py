"""The layers of a private server and its disk, with their default settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mydyno.campaign.stores import strip
from mydyno.dataset import Store
from mydyno.host import Host, ask
from mydyno.model import Change, DriftError, Durability, Settings
from mydyno.server import Instance
from mydyno.stack import Layer, atime, mysqld
from mydyno.stack.alloc import Alloc, installed
from mydyno.stack.env import Env
from mydyno.stack.fs import Fs
from mydyno.stack.known.mounts import missing
from mydyno.stack.known.variables import describe
from mydyno.stack.known.zfs import protected
from mydyno.stack.launch_file import Server
from mydyno.stack.limits import Limits
from mydyno.stack.mysqld import Mysqld
from mydyno.stack.net import Net

_DESCRIBE_S = 120.0  # MySQL needs six hundred statements to find its dynamic variables


@dataclass(frozen=True, slots=True)
class ServerLayers:
    """The layers of a private server, and their default settings by layer."""

    layers: Sequence[Layer]
    stock: Mapping[str, Settings]

    def plan(self, want: Settings) -> list[tuple[Layer, Change]]:
        """Return the changes from the defaults; raise `SpecError` for an unknown setting."""
        return [
            (layer, _judged(change, want))
            for layer in self.layers
            for change in layer.plan(
                self.stock.get(layer.name, {}), strip(want, f"db/{layer.name}.")
            )
        ]

    def verify(self, host: Host, want: Settings) -> None:
        """Raise `DriftError` where the running server does not have the wanted settings."""
        left = []
        for layer in self.layers:
            mine = strip(want, f"db/{layer.name}.")
            if mine:
                now = ask(host, layer.observe())
                left += [
                    f"{layer.name}.{c.key} is {c.before}, not {c.after}"
                    for c in layer.plan(now, mine)
                    if c.key in mine
                ]
        if left:
            raise DriftError(f"the running server differs from its treatment: {'; '.join(left)}")


def _judged(change: Change, want: Settings) -> Change:
    """Return a change with its durability on this filesystem: ZFS writes no torn pages."""
    if change.key == "innodb_doublewrite" and protected(want):
        return replace(change, durability=Durability.SAME)
    return change


def read_defaults(instance: Instance, link: str = "") -> ServerLayers:
    """Return the layers and defaults of a server that runs with its default settings.

    The order is that in which they take effect.  `link` is its address on the lab link, if any.
    """
    place, host, build = instance.place, instance.host, instance.build

    def server(name: str) -> Server:
        return Server(place.launch / name, place.pid_file, place.options)

    stock = ask(host, mysqld.observe(instance.client, place.owned))
    description = describe(instance.client, build.flavour, build.version, stock)
    variables = ask(host, description, timeout_s=_DESCRIBE_S)
    layers: Sequence[Layer] = (
        Limits(server("limits")),
        Env(server("env")),
        Alloc(server("alloc"), ask(host, installed())),
        Mysqld(instance.client, place.owned, build.flavour, build.version, variables, stock),
        Net(place.launch / "net", instance.client, build.flavour, build.version, link),
    )
    return ServerLayers(layers, {layer.name: ask(host, layer.observe()) for layer in layers})


def fs_layer(store: Store) -> Fs:
    """Return the filesystem layer of a store."""
    where = store.live.parent if store.disk else store.live
    return Fs(str(where), f"/dev/{store.disk}" if store.disk else "")


def verify_mount(host: Host, layer: Fs, options: str) -> None:
    """Raise `DriftError` where a mount lacks its options, or access times contradict them."""
    if left := missing(ask(host, layer.observe())["mount"], options):
        raise DriftError(f"{layer.where}: mounted without {', '.join(left)}")
    wanted = atime.wanted(options)
    if wanted and (found := ask(host, atime.probe(layer.where))) != wanted:
        raise DriftError(
            f"{layer.where}: mounted with {wanted}, but access times behave as with {found}"
        )
