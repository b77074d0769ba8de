"""A lab link: a network namespace for the load, connected to the host by two interfaces.

They are a veth pair, or, where the link has a delay, the ends of a wire of `mydyno-disk`: many
kernels have no netem.
"""

import os
import random
import secrets
import socket
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network
from pathlib import Path
from typing import ClassVar

import msgspec

from mydyno.host import Host, Local, Namespaced, Process, Running, ask, halt, is_root, processes
from mydyno.journal.register import clear_parts, save, state_folder
from mydyno.lab.helper import Helper
from mydyno.lab.values import record_path
from mydyno.model import Action, HostError, Probe, RefusedError

# Addresses for network benchmarks (RFC 2544, C.2.2), four for each link.
_BLOCK = ip_network("198.18.0.0/15")
_LENGTH = 30
_ATTEMPTS = 100
_NAMESPACES = "/run/netns"
_TUN = "/dev/net/tun"
_TOOLS = ("ip", "tc", "nsenter", "xargs", "iperf3")


@dataclass(frozen=True, slots=True)
class LinkState:
    """One link: its name, its network as ``198.18.4.8/30``, the host it is on, and its owner."""

    link: str
    network: str
    host: str
    owner: Process | None
    boot: str = ""

    @property
    def device(self) -> str:
        """Return the interface on the host's side, which shows the load's traffic."""
        return f"{self.link}h"

    @property
    def peer(self) -> str:
        """Return the interface inside the namespace."""
        return f"{self.link}l"

    @property
    def address(self) -> str:
        """Return the address on the host's side, for the server."""
        return str(ip_network(self.network)[1])

    @property
    def load_address(self) -> str:
        """Return the address inside, for the load."""
        return str(ip_network(self.network)[2])


@dataclass(slots=True)
class Wire(Helper):
    """The process between both ends of a link with a delay; they go when it ends."""

    key: ClassVar[str] = "link.delay"
    role: ClassVar[str] = "wire"
    cannot: ClassVar[str] = (
        "no link with a delay can be made here: {}; run as root with CAP_NET_ADMIN and "
        f"CAP_SYS_NICE on a host that has {_TUN}, or leave the key out"
    )
    priority: ClassVar[int] = 2  # a dose of CPUs must not make the way longer
    ends: tuple[str, ...] = ()

    def task(self) -> tuple[str, ...]:
        """Return what carries frames between the ends."""
        return ("wire", *self.ends)


class LabLink:
    """A link of this process on a host: made by `up`, removed by `down`.

    `delays` is the folder of its wire's orders, None for a link without a delay.
    """

    def __init__(self, host: Host, state: LinkState, delays: Path | None = None) -> None:
        self.host = host
        self.state = state
        here, there = ("--here", state.device), ("--there", state.peer)
        ends = (*here, *there, "--namespace", f"{_NAMESPACES}/{state.link}")
        self.wire = Wire(host, delays, ends=ends) if delays else None

    @property
    def inside(self) -> Host:
        """Return the host inside the namespace, with this link and a loopback only."""
        return Namespaced(self.host, self.state.link)

    def up(self) -> None:
        """Make the link; clean up on failure.  Raise `RefusedError` where none can be made."""
        if reason := available(self.host):
            raise RefusedError(f'net.address = "lab": {reason}')
        save(_path(self.state), msgspec.json.encode(self.state))
        try:
            self.host.run(Action(("ip", "netns", "add", self.state.link))).check()
            if self.wire:
                self.wire.start()
            for argv in _made(self.state, wired=self.wire is not None):
                self.host.run(Action(argv)).check()
        except BaseException:
            self.down()
            raise

    def down(self) -> Sequence[str]:
        """Remove the link, whatever state it is in; return what was removed."""
        if self.wire:
            self.wire.stop()
        return _remove(self.host, self.state)


def planned(host: Host, delays: Path | None = None) -> LabLink:
    """Return a link, not made yet, with a new name and a network unused on the host."""
    taken = _networks(host)
    every = 1 << (_LENGTH - _BLOCK.prefixlen)
    for _ in range(_ATTEMPTS):
        first = int(_BLOCK.network_address) + 4 * random.randrange(every)
        network = IPv4Network((first, _LENGTH))
        if not any(network.overlaps(other) for other in taken):
            owner = processes.identify(Local(), os.getpid())
            name = f"mydyno{secrets.token_hex(4)}"  # one letter less than an interface's longest
            boot = processes.boot_of(host)
            return LabLink(host, LinkState(name, str(network), host.name, owner, boot), delays)
    raise RefusedError(
        f"{host.name}: no free network in {_BLOCK} for a lab link; remove routes to it"
    )


def available(host: Host, *, delayed: bool = False) -> str:
    """Return an empty string if a link can be made on `host`, else the reason in a sentence."""
    if not is_root(host):
        return "A lab link needs root, for its namespace and its interfaces."
    missing = [tool for tool in _TOOLS if host.run(Action(("which", tool))).returncode]
    if missing:
        return f"{', '.join(missing)} not found; install iproute2, iperf3, util-linux, findutils."
    if delayed and host.run(Action(("test", "-c", _TUN))).returncode:
        return f"A link with a delay needs {_TUN}; load the module `tun`, or leave link.delay out."
    return ""


def sweep_links(host: Host) -> Sequence[str]:
    """Remove links of dead owners on `host`; return a line for each."""
    lines = []
    folder = state_folder("links")
    clear_parts(folder)
    for path in sorted(folder.glob("[!.]*.json")):
        try:
            state = msgspec.json.decode(path.read_bytes(), type=LinkState)
        except msgspec.DecodeError as error:
            raise HostError(
                f"{path}: not a valid link record ({error}); check `ip netns list`, then "
                "remove the file"
            ) from error
        if state.host == host.name and not processes.alive(Local(), state.owner):
            lines.append(f"link {state.link}: leftover; removed {', '.join(_remove(host, state))}")
    return lines


def _made(state: LinkState, *, wired: bool) -> Sequence[tuple[str, ...]]:
    """Return the commands that make it: an interface at each side, no routes, no IPv6.

    A wire has made the interfaces.
    """
    inside = ("ip", "-n", state.link)
    ends = ((("ip",), state.device, state.address), (inside, state.peer, state.load_address))
    veth = ("ip", "link", "add", state.device, "type", "veth", "peer", "name", state.peer)
    made: list[tuple[str, ...]] = [] if wired else [(*veth, "netns", state.link)]
    made.append((*inside, "link", "set", "lo", "up"))
    for ip, device, address in ends:
        made.append((*ip, "link", "set", device, "addrgenmode", "none"))
        made.append((*ip, "address", "add", f"{address}/{_LENGTH}", "dev", device))
        made.append((*ip, "link", "set", device, "up"))
    return made


def _remove(host: Host, state: LinkState) -> list[str]:
    """Remove both interfaces with the one, then the namespace, then the record."""
    removed = []
    # A reboot has removed both; anything with the name now is not this link.
    there = state.boot == processes.boot_of(host)
    for kind, name in (("link", state.device), ("netns", state.link)) if there else ():
        if host.run(Action(("ip", kind, "delete", name))).returncode == 0:
            removed.append(f"{kind} {name}")
        elif _there(host, kind, name):
            raise HostError(
                f"link {state.link}: {kind} {name} cannot be removed; see `ip {kind} list`"
            )
    _path(state).unlink(missing_ok=True)
    return removed or ["its record"]


def _there(host: Host, kind: str, name: str) -> bool:
    place = "/sys/class/net" if kind == "link" else _NAMESPACES
    return host.run(Action(("test", "-e", f"{place}/{name}"))).returncode == 0


def _networks(host: Host) -> Sequence[IPv4Network]:
    """Return the networks that the host has a route to, in all tables, without the default."""
    question = ("ip", "-4", "-j", "route", "show", "table", "all")
    return ask(host, Probe(Action(question), _parse_routes))


class _Route(msgspec.Struct, frozen=True):
    dst: str = "default"


def _parse_routes(raw: bytes) -> Sequence[IPv4Network]:
    routes = msgspec.json.decode(raw or b"[]", type=list[_Route])
    return tuple(IPv4Network(r.dst, strict=False) for r in routes if r.dst != "default")


def _path(state: LinkState) -> Path:
    return record_path(state_folder("links"), state.link)


_FRAME = 1514 / 1448  # bytes on the wire for bytes of payload: Ethernet, IPv4, TCP with timestamps
_RAMP_S = 1  # of slow start and a first burst, left out
_MEASURED_S = 2
_SPARE_S = 20.0
_PORT = 5201
_LISTENS_S = 10.0  # a busy machine may take seconds to start the receiver
_PAUSE_S = 0.1


@dataclass(frozen=True, slots=True)
class Throughput:
    """Bytes per second on the wire, to the load and from it."""

    to_load: float
    from_load: float


class _Rate(msgspec.Struct, frozen=True):
    bits_per_second: float


class _End(msgspec.Struct, frozen=True):
    sum_received: _Rate | msgspec.UnsetType = msgspec.UNSET


class _Report(msgspec.Struct, frozen=True):
    end: _End = _End()
    error: str = ""


def measure_throughput(link: LabLink) -> Throughput:
    """Return the throughput in both directions, measured one after the other in six seconds.

    Raises `HostError` where no traffic passes, for example because of a firewall.
    """
    listen = ("iperf3", "--server", "--bind", link.state.address, "--port", str(_PORT))
    server = link.host.start(processes.ending_with_us(Action(listen)))
    try:
        return Throughput(_one(link, server, "--reverse"), _one(link, server))
    finally:
        halt(server)


# Connects to a port that often, and prints the median of the seconds.
_CONNECTS = """
import socket, statistics, sys, time
spent = []
for _ in range(31):
    begun = time.perf_counter()
    socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5).close()
    spent.append(time.perf_counter() - begun)
print(statistics.median(spent))
"""


def measure_round_trip(link: LabLink) -> float:
    """Return the seconds of a round trip: what connecting takes, in the median of 31 times.

    Raises `HostError` where nothing connects.
    """
    with socket.create_server((link.state.address, 0), backlog=64) as listening:
        port = str(listening.getsockname()[1])
        argv = (sys.executable, "-I", "-S", "-c", _CONNECTS, link.state.address, port)
        return float(link.inside.run(Action(argv)).check().stdout)


def _one(link: LabLink, server: Running, *way: str) -> float:
    argv = ("iperf3", "--json", "--client", link.state.address, "--port", str(_PORT), *way)
    timing = ("--omit", str(_RAMP_S), "--time", str(_MEASURED_S), "--connect-timeout", "3000")
    end = time.monotonic() + _LISTENS_S
    while True:  # it may not listen yet
        done = link.inside.run(Action((*argv, *timing)), timeout_s=_SPARE_S)
        report = parse(done.stdout)
        if isinstance(report, float):
            return report
        if server.returncode() is not None or time.monotonic() > end:
            break
        time.sleep(_PAUSE_S)
    raise HostError(
        f"link {link.state.link}: no traffic passes ({report}); allow {link.state.load_address} "
        f"on {link.state.device} in the host's firewall"
    )


def parse(raw: bytes) -> float | str:
    """Return the bytes per second on the wire in a report, or its error message."""
    try:
        report = msgspec.json.decode(raw, type=_Report)
    except msgspec.DecodeError as error:
        return f"iperf3 printed no report: {error}"
    received = report.end.sum_received
    if isinstance(received, msgspec.UnsetType) or report.error:
        return report.error or "iperf3 reported no end"
    return received.bits_per_second / 8 * _FRAME
