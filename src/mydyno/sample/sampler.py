"""The sampler of a trial: started before the load, ended after it; it never fails a trial.

Overhead: one process at 1 Hz; docs/guide/probe.md quotes what it was measured to cost.
"""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from ipaddress import ip_address
from pathlib import Path

import msgspec

from mydyno.host import (
    Host,
    Remote,
    Running,
    disks_below,
    halt,
    packaged_program,
    remote_work_folder,
    uploaded_program,
)
from mydyno.model import Action, HostError
from mydyno.sample.facts import UNKNOWN_SPEEDS

_NAME = "mydyno-probe"
NOT_BUILT = f"{_NAME} is not here; `make setup` builds it"


def probe_binary() -> str:
    """Return the path of mydyno-probe, or ``""`` where it is not built."""
    return packaged_program(_NAME)


@dataclass(frozen=True, slots=True)
class Where:
    """Which disk holds the data and which interface carries the load, as the kernel names them.

    Each is empty where there is none, or it is unknown.  `link_bytes_per_s` is how fast
    the interface's link is, None where that is not known.  `caps` are those of a lab disk, by the
    names of `Figures`.  `below` are the disks that a volume or array stands on.
    """

    disk: str = ""
    interface: str = ""
    link_bytes_per_s: float | None = None
    caps: Mapping[str, float] = field(default_factory=dict)
    below: Sequence[str] = ()


def where_in(host: Host, folder: Path) -> Where:
    """Return which disk holds a folder, nothing where that is unknown."""
    disk = disk_of(host, folder)
    return Where(disk, below=disks_below(host, disk))


def disk_of(host: Host, folder: Path) -> str:
    """Return the disk, volume or array under `folder` as /proc/diskstats names it, or ``""``.

    A partition's disk is named, as it is the disk that has a queue and flushes.
    """
    try:
        return _named(host, folder)
    except HostError:  # a tool is missing, or no answer came
        return ""


def interface_to(host: Host, address: str, *, elsewhere: bool = False) -> str:
    """Return the interface through which `host` reaches an address, or ``""``.

    That of an address of its own is the loopback, whichever interface has it; but for who comes
    from `elsewhere` it is that very interface.
    """
    if not elsewhere and ip_address(address).is_loopback:
        return "lo"
    asked = ("addr", "show", "to") if elsewhere else ("route", "get")
    try:
        done = host.run(Action(("ip", "-j", *asked, address)))
        found = msgspec.json.decode(done.stdout or b"[]", type=list[_Named])
    except (HostError, msgspec.DecodeError):
        return ""
    return next((one.dev or one.ifname for one in found if one.dev or one.ifname), "")


def link_speed(host: Host, interface: str) -> float | None:
    """Return the bytes per second of an interface's link, None where it is not known.

    Only what has hardware behind it, or stands on such, reports a real speed: the kernel's virtual
    pairs report 10 Gbit/s whatever happens on them.
    """
    place = f"/sys/class/net/{interface}"
    if not interface:
        return None
    try:
        shown = host.run(Action(("grep", "-s", ".", f"{place}/speed", f"{place}/uevent"))).stdout
        real = host.run(Action(("test", "-e", f"{place}/device"))).returncode == 0
    except HostError:
        return None
    return parse_speed(shown, real=real)


def parse_speed(raw: bytes, *, real: bool) -> float | None:
    """Return bytes per second from an interface's files `speed` (Mbit/s) and `uevent`.

    A driver that does not know reports -1, 65535 or 4294967295.
    """
    text = raw.decode(errors="replace")
    stacked = any(f"DEVTYPE={kind}\n" in text for kind in ("bond", "vlan"))
    found = re.search(r"/speed:(\d+)$", text, re.MULTILINE)
    mbit = int(found[1]) if found and (real or stacked) else 0
    return None if mbit in UNKNOWN_SPEEDS else mbit * 1e6 / 8


class _Named(msgspec.Struct, frozen=True):
    dev: str = ""
    ifname: str = ""


def _named(host: Host, folder: Path) -> str:
    columns = ("findmnt", "--noheadings", "--raw", "--output", "MAJ:MIN,SOURCE")
    output = host.run(Action((*columns, "--target", str(folder)))).stdout.decode(errors="replace")
    number, _, source = output.strip().partition(" ")
    if not number:
        return ""
    # btrfs has a number of its own, which is no device's; its source names one
    device = _real(host, source.partition("[")[0]) if source.startswith("/dev/") else None
    links = [f"/sys/dev/block/{number}", *([f"/sys/class/block/{device.name}"] if device else [])]
    found = next((path for link in links if (path := _real(host, link))), None)
    if found is None:
        return ""
    is_part = host.run(Action(("test", "-e", str(found / "partition")))).returncode == 0
    return found.parent.name if is_part else found.name


def _real(host: Host, path: str) -> Path | None:
    done = host.run(Action(("realpath", "-e", "--", path)))
    return None if done.returncode else Path(done.stdout.decode(errors="replace").strip())


# the files of a trial's folder
FILE, ERRORS, WHERE = "probe.bin", "probe.err", "probe.json"
LOAD, START = "load.pid", "load.start"
WALL = "wall"  # in `load.start`: the number is the sampled host's wall clock, not its uptime
_GRACE_S = 3.0
_LATE_NS = 250_000_000  # of an earlier report, before a later one is believed in its place
STATES = "100ms"  # between two looks at what the threads do


@dataclass(frozen=True, slots=True)
class Watch:
    """What is sampled beside the host: processes by role, and the server of an option file."""

    where: Where
    processes: Mapping[str, int] = field(default_factory=dict)
    server: Path | None = None


@dataclass(slots=True)
class Sampling:
    """What the sampler knows of the load: which process it is, and when its time began.

    `ahead_ns` is a far host's wall clock less our monotonic one, `origin_ns` the start of the load.
    """

    folder: Path
    started: Callable[[int, Host], None] = lambda _, __: None
    ahead_ns: int | None = None
    origin_ns: int | None = None

    def reported(self, t_s: float) -> None:
        """Save the start time of the load from its report at `t_s`, the one that came soonest.

        On a host whose CPUs others keep busy a report may be read seconds after it was written.
        """
        origin_ns = time.monotonic_ns() - round(t_s * 1e9)
        if self.origin_ns is not None and origin_ns > self.origin_ns - _LATE_NS:
            return
        self.origin_ns = origin_ns
        known = f"{origin_ns}" if self.ahead_ns is None else f"{origin_ns + self.ahead_ns} {WALL}"
        with suppress(OSError):  # a full disk ends the trial where its output is written
            (self.folder / START).write_text(f"{known}\n", encoding="ascii")


@contextmanager
def sampling(host: Host, folder: Path, watch: Watch) -> Iterator[Sampling]:
    """Sample the host into the trial's folder; without the program or when it fails, do not.

    A trial is valid without its sample, so nothing here fails it; `complaint` returns errors.
    """
    stack = ExitStack()
    try:
        yield _begun(stack, host, folder, watch)
    finally:
        try:
            stack.close()
        except (HostError, OSError) as error:
            _complain(folder, str(error))


def _begun(stack: ExitStack, host: Host, folder: Path, watch: Watch) -> Sampling:
    if not probe_binary():
        return Sampling(folder)
    try:
        (folder / WHERE).write_bytes(msgspec.json.encode(watch.where))
        there = stack.enter_context(remote_work_folder(host, folder))
        running = host.start(_action(host, there, watch), stderr=there / ERRORS)
        stack.callback(_end, running, folder)
        return Sampling(folder, partial(_load_started, host, there), _ahead_ns(host))
    except (HostError, OSError) as error:
        _complain(folder, str(error))
        return Sampling(folder)


def _load_started(host: Host, there: Path, pid: int, on: Host) -> None:
    """Pass the load's process id to the sampler, where the load runs on the host it samples."""
    if on.name != host.name:  # there the number may be anyone's
        return
    with suppress(HostError):
        host.run(Action(("tee", str(there / LOAD)), f"{pid}\n".encode()))


def _ahead_ns(host: Host) -> int | None:
    """Return a far host's wall clock less our monotonic one, to half a round trip."""
    if not isinstance(host, Remote):
        return None
    asked_ns = time.monotonic_ns()
    reply = host.run(Action(("date", "+%s%N"))).check().stdout
    return int(reply) - (asked_ns + time.monotonic_ns()) // 2


def _complain(folder: Path, text: str) -> None:
    with suppress(OSError), (folder / ERRORS).open("a", encoding="utf-8") as errors:
        errors.write(f"{text}\n")


def _action(host: Host, there: Path, watch: Watch) -> Action:
    argv = [uploaded_program(host, probe_binary()), "sample", "--out", str(there / FILE)]
    argv += [] if isinstance(host, Remote) else ["--owner", str(os.getpid())]
    argv += ["--process-file", f"load={there / LOAD}", "--states", STATES]
    for role, pid in watch.processes.items():
        argv += ["--process", f"{role}={pid}"]
    if watch.server:
        argv += ["--server-defaults", str(watch.server)]
    return Action(tuple(argv))


def _end(running: Running, folder: Path) -> None:
    code = running.returncode()
    halt(running, grace_s=_GRACE_S)
    if code is not None:
        _complain(folder, f"mydyno-probe ended before the load did (exit {code})")


def complaint(folder: Path) -> str:
    """Return the errors of a trial's sampler, or ``""``."""
    errors = folder / ERRORS
    return errors.read_text(errors="replace").strip() if errors.exists() else ""
