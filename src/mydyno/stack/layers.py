"""The layers that a spec may name, each with what it declares, and how it is made."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cache
from pathlib import Path

from mydyno.journal.records import Acting
from mydyno.model import Action, Change, Cost, Durability, HostError, Settings
from mydyno.model.plugins import with_plugins
from mydyno.stack import cgroup, cpus, doses, link, zfs
from mydyno.stack.alloc import Alloc
from mydyno.stack.block import Block
from mydyno.stack.cgroup import Cgroup
from mydyno.stack.existing_variables import ExistingVariables
from mydyno.stack.fs import Fs, unsafe
from mydyno.stack.kernel import RELEASE, Kernel
from mydyno.stack.known.variables import AT_ONCE, Variable
from mydyno.stack.launch_file import Env, Limits, Server
from mydyno.stack.mysqld import Mysqld, durability
from mydyno.stack.net import Net
from mydyno.stack.protocol import Layer, StackSettings


class Scope(Enum):
    """What a layer's settings belong to: the host, the data's disk, the server, or a lab."""

    HOST = "host"
    DISK = "disk"
    SERVER = "server"
    LAB = "lab"


@dataclass(frozen=True, slots=True)
class HostPlace:
    """Where a layer of the host or the disk applies; `keys` are the bare names it may be set to.

    `disk` finds the disk's name in /sys/block, `mount` where its filesystem is mounted: ``""`` for
    one that mydyno makes itself.  Both may ask the host, and raise `HostError`.
    """

    keys: tuple[str, ...]
    disk: Callable[[], str] = str
    mount: Callable[[], str] = str


@dataclass(frozen=True, slots=True)
class ServerKind:
    """A server program as layers see it: `variables` it knows, and their `stock` values.

    `tls` is its TLS library, `allocator` the one that it is linked against or contains.
    """

    flavour: str = ""
    version: tuple[int, ...] = ()
    variables: Mapping[str, Variable] = field(default_factory=dict)
    stock: Settings = field(default_factory=dict)
    tls: str = ""
    allocator: str = "glibc"


@dataclass(frozen=True, slots=True)
class ServerPlace:
    """Where a layer of a private server applies; by default nowhere, to validate settings.

    `client` is a client's argv, `launch` the folder of launch files, `options` the option file the
    server starts with, `owned` the one that holds the treatment.  `link` is the server's address on
    the lab's link; `libraries` are the host's allocators, `cpus` each role's host's, where known.
    """

    kind: ServerKind = ServerKind()
    client: tuple[str, ...] = ()
    launch: Path = Path()
    pid_file: Path = Path()
    options: Path = Path()
    owned: Path = Path()
    link: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    cpus: Mapping[str, frozenset[int]] = field(default_factory=dict)

    def file(self, name: str) -> Server:
        """Return the launch file of a layer."""
        return Server(self.launch / name, self.pid_file, self.options)


@dataclass(frozen=True, slots=True)
class Needs:
    """What bare settings need: root and these `tools` on the host, a server, a lab disk."""

    root: bool = False
    tools: Callable[[Settings], Sequence[str]] = lambda _: ()
    server: bool = False
    lab: bool = False


@dataclass(frozen=True, slots=True)
class LayerKind:
    """What a layer declares.

    `cost` is what a change of a bare key interrupts, as far as it is known without a server.
    `on_host` makes a layer of the host or its disk, None where it is part of the data set;
    `in_server` makes one of a private server.  `validate` raises `SpecError` for a treatment that
    is invalid on any host, or with `in_server`, that a server like this does not take; it runs no
    command.  `durability` compares two values of a bare key under a treatment.  A key may be set
    in each of `roles`; `keys` are its only keys, if it names them here.  Values of a `literal`
    layer are taken as written: ``70%`` is not a share of the host's memory.
    """

    scope: Scope
    cost: Callable[[str], Cost]
    on_host: Callable[[HostPlace], Layer | None] = lambda _: None
    in_server: Callable[[ServerPlace], Layer] | None = None
    validate: Callable[[StackSettings, ServerPlace], None] = lambda _settings, _place: None
    durability: Callable[[str, str, str, StackSettings], Durability] = (
        lambda _key, _before, _after, _settings: Durability.SAME
    )
    needs: Needs = Needs()
    roles: tuple[str, ...] = ("db",)
    keys: tuple[str, ...] = ()
    literal: bool = False


def _server(make: Callable[[ServerPlace], Layer], *, roles: tuple[str, ...] = ("db",)) -> LayerKind:
    """Return what every layer of a private server declares."""

    def validate(settings: StackSettings, place: ServerPlace) -> None:
        layer = make(place)
        layer.plan({}, settings.of(layer.name))

    return LayerKind(
        Scope.SERVER,
        lambda _: Cost.RESTART,
        in_server=make,
        validate=validate,
        needs=Needs(server=True),
        roles=roles,
    )


def _mysqld(place: ServerPlace) -> Mysqld:
    kind = place.kind
    return Mysqld(place.client, place.owned, kind.flavour, kind.version, kind.variables, kind.stock)


def _existing(place: HostPlace) -> Layer | None:
    """Return the variables of a server that is not ours, by the option file recorded with them."""
    return ExistingVariables(place.keys, where) if (where := place.mount()) else None


def _validate_fs(settings: StackSettings, place: ServerPlace) -> None:
    """Validate as on a disk of ours; what a disk of the host's does not take, that disk shows.

    The properties of ZFS are validated by the lab that has it.
    """
    del place
    wanted = settings.of("fs")
    if wanted.get("type") != zfs.KIND:
        Fs("", "/dev/disk").plan({}, wanted)


def _fs_tools(settings: Settings) -> Sequence[str]:
    kind = settings.get("type")
    return ((kind if kind == zfs.KIND else f"mkfs.{kind}"),) if kind else ()


def _fs_durability(key: str, before: str, after: str, settings: StackSettings) -> Durability:
    del before, settings
    weaker = zfs.weaker(key, after) or (key == "mount" and unsafe(after))
    return Durability.WEAKER if weaker else Durability.SAME


def _validate_variables(settings: StackSettings, place: ServerPlace) -> None:
    if place.kind.variables:  # not every program lists its variables
        _mysqld(place).plan({}, settings.of("mysqld"))


def _variable_durability(key: str, before: str, after: str, settings: StackSettings) -> Durability:
    """Compare values of a variable; on ZFS no page is torn without its doublewrite buffer.

    Where each commit flushes, no timeout is waited for.
    """
    if key == "innodb_doublewrite" and zfs.protected(settings):
        return Durability.SAME
    flushes = settings.of("mysqld").get("innodb_flush_log_at_trx_commit") == "1"
    if key == "innodb_flush_log_at_timeout" and flushes:
        return Durability.SAME
    return durability(key, before, after)


def _net(place: ServerPlace) -> Net:
    kind = place.kind
    own = place.launch / "net"
    return Net(own, place.client, kind.flavour, kind.version, place.link, kind.tls)


def _alloc(place: ServerPlace) -> Alloc:
    return Alloc(place.file("alloc"), place.libraries, place.kind.allocator)


def _lab_layers() -> dict[str, LayerKind]:
    """Return the layers of what mydyno makes to emulate a stack: its disks, its link, its CPUs."""
    return {
        "link": LayerKind(
            Scope.LAB,
            lambda _: Cost.ONLINE,
            validate=lambda settings, _: link.refuse_bad_link(settings),
            needs=Needs(root=True, tools=lambda _: ("ip", "tc"), server=True),
            keys=link.KEYS,
            literal=True,
        ),
        "disk": LayerKind(
            Scope.LAB,
            lambda key: Cost.REFORMAT if key == doses.CLASS else Cost.ONLINE,
            validate=lambda settings, _: doses.validate(settings),
            needs=Needs(root=True, lab=True),
            keys=(*doses.DISK_KEYS, doses.CLASS),
            literal=True,
        ),
        "slow": LayerKind(
            Scope.LAB,
            lambda _: Cost.ONLINE,
            validate=lambda settings, _: doses.refuse_slow(settings),
            needs=Needs(root=True, tools=lambda _: ("chrt",)),
            keys=doses.CPU_KEYS,
            literal=True,
        ),
    }


def _server_layers() -> dict[str, LayerKind]:
    """Return the layers of a private server's process: how it is launched, and its variables."""
    return {
        "limits": _server(lambda place: Limits(place.file("limits"))),
        "cpus": replace(
            _server(lambda place: cpus.Cpus(place.file("cpus")), roles=("db", "load")),
            validate=lambda settings, place: cpus.validate(settings, place.cpus),
            needs=Needs(server=True, tools=lambda _: ("taskset",)),
            keys=(cpus.KEY,),
            literal=True,
        ),
        "cgroup": replace(
            _server(lambda place: Cgroup(place.file("cgroup"))),
            needs=Needs(root=True, server=True),
            keys=cgroup.KEYS,
            literal=True,
        ),
        "env": _server(lambda place: Env(place.file("env")), roles=("db", "load")),
        "alloc": _server(_alloc),
        "mysqld": replace(
            _server(_mysqld),
            on_host=_existing,
            validate=_validate_variables,
            durability=_variable_durability,
        ),
        "net": _server(_net),
    }


@cache
def layers() -> Mapping[str, LayerKind]:
    """Return every layer by its name: ours, in the order in which they take effect, and plug-ins.

    Raises `SpecError` for a plug-in that cannot be used.
    """
    own = {
        "block": LayerKind(
            Scope.DISK,
            lambda _: Cost.ONLINE,
            lambda place: Block(place.disk(), owned=False),
            needs=Needs(root=True),
        ),
        "fs": LayerKind(
            Scope.DISK,
            lambda key: Cost.REMOUNT if key == "mount" else Cost.REFORMAT,
            lambda place: Fs(where, "") if (where := place.mount()) else None,
            validate=_validate_fs,
            durability=_fs_durability,
            needs=Needs(root=True, tools=_fs_tools),
        ),
        "raid": LayerKind(Scope.DISK, lambda _: Cost.REFORMAT, needs=Needs(root=True, lab=True)),
        "kernel": LayerKind(
            Scope.HOST,
            lambda key: Cost.REBOOT if key == RELEASE else Cost.ONLINE,
            lambda place: Kernel(place.keys),
            needs=Needs(root=True, tools=lambda _: ("sysctl",)),
        ),
        **_server_layers(),
        **_lab_layers(),
        "server": LayerKind(
            Scope.SERVER,
            lambda _: Cost.REFORMAT,
            needs=Needs(server=True),
            keys=("build",),
            literal=True,
        ),
    }
    return with_plugins("mydyno.layers", LayerKind, own)


def kind_of(key: str) -> tuple[LayerKind, str]:
    """Return what the layer of a full key declares, and the bare key; raise `KeyError`."""
    name, _, bare = key.rpartition("/")[2].partition(".")
    return layers()[name], bare


def of_scope(key: str, *scopes: Scope) -> bool:
    """Return whether a full key belongs to the server's host and its layer has such a scope."""
    return key.startswith("db/") and kind_of(key)[0].scope in scopes


def cost_of(key: str) -> Cost:
    """Return what a change of a full key interrupts, as its layer declares it."""
    kind, bare = kind_of(key)
    return Cost.ONLINE if key.startswith("load/") else kind.cost(bare)


def at_once(key: str) -> bool:
    """Return whether a change of a full key shows its entire effect in seconds, without a restart.

    That is known of the load's own settings, of a disk's queue, of a link, and of some variables;
    burst credits last for longer than that.
    """
    kind, bare = kind_of(key)
    if key == f"db/disk.{doses.CREDITS}":
        return False
    if key.startswith("load/"):
        return True
    if kind.scope in {Scope.DISK, Scope.LAB}:
        return kind.cost(bare) is Cost.ONLINE
    return key.startswith("db/mysqld.") and bare in AT_ONCE


def judged(
    changes: Iterable[Change], settings: StackSettings, stock: Settings, baseline: Settings
) -> Sequence[Change]:
    """Return the changes of a treatment, with full keys, and what each does to durability.

    They are compared with the settings of the `baseline`; where it has none with `stock`, a
    server's defaults, or with the value before the change.  What the baseline sets and the
    treatment leaves, or sets, at a weaker default is added.
    """
    beside = {**stock, **baseline}
    found = [
        replace(
            change,
            durability=kind.durability(
                bare, beside.get(change.key, change.before), change.after, settings
            ),
        )
        for change in changes
        for kind, bare in [kind_of(change.key)]
    ]
    for key in baseline.keys() & stock.keys() - {change.key for change in found}:
        (kind, bare), kept = kind_of(key), settings.get(key, stock[key])
        weaker = kind.durability(bare, baseline[key], kept, settings)
        if weaker is Durability.WEAKER:
            found.append(Change(key, baseline[key], kept, Action(()), durability=weaker))
    return found


def server_layers(place: ServerPlace) -> Sequence[Layer]:
    """Return the layers of a private server, in the order in which they take effect."""
    return [kind.in_server(place) for kind in layers().values() if kind.in_server]


def layer_of(acting: Acting) -> Layer:
    """Return the layer of a host whose settings were recorded: `rollback` has no spec to ask.

    Raises `HostError` for a layer that is not installed.
    """
    kind = layers().get(acting.layer)
    place = HostPlace(tuple(acting.before), lambda: acting.at, lambda: acting.at)
    layer = kind.on_host(place) if kind else None
    if layer is None:
        raise HostError(
            f"{acting.layer}: this version of mydyno cannot restore it; use a newer one, or "
            "install the plug-in that the layer comes from"
        )
    return layer
