"""The host's facts: processor, memory, kernel and system, in one round trip.

Overhead: one `grep` over a dozen small files of /proc and /sys, some 5 ms, never in a trial.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

from mydyno.host import Host
from mydyno.model import Action, HostError

_CPU = "/sys/devices/system/cpu"
_SCHEDULER = "/queue/scheduler"
_NET, _DEVICE = "/sys/class/net", "/device/uevent"
_TICK_S = 0.01  # of all counts of time that Linux shows (USER_HZ)
UNKNOWN_SPEEDS = (0, 65535, 4294967295)  # Mbit/s, of a driver that does not know its link
_FILES = {
    "/proc/meminfo": "memory",
    "/proc/cpuinfo": "processor",
    "/proc/version": "kernel",
    "/etc/os-release": "system",
    "/proc/loadavg": "load average",
    "/sys/class/dmi/id/sys_vendor": "vendor",
    "/sys/class/dmi/id/product_name": "machine",
    "/sys/kernel/mm/transparent_hugepage/enabled": "transparent huge pages",
    "/proc/sys/vm/swappiness": "vm.swappiness",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource": "clock source",
    f"{_CPU}/cpu0/cpufreq/scaling_governor": "frequency governor",
    "/proc/sys/kernel/hostname": "name",
}


@dataclass(frozen=True, slots=True)
class Facts:
    """A host's size, its I/O schedulers, and everything worth a line in the report."""

    memory_bytes: int
    cores: int
    details: Mapping[str, str]
    schedulers: tuple[str, ...] = ()


def facts(host: Host) -> Facts:
    """Return a host's facts; what is not available is left out.

    Raises `HostError` where memory or processors cannot be read.  The exit code is not looked at:
    grep exits 2 where one of the files does not exist, and few hosts have all of them.  One command
    reads all, as each round trip to a far host counts.
    """
    first, *others = _FILES
    paths = (first, f"*{_SCHEDULER}", f"{_NET}/*{_DEVICE}", f"{_NET}/*/speed")
    either = [word for path in paths for word in ("-o", "-path", path)][1:]
    find = ("find", "-L", first, "/sys/block", _NET, "-maxdepth", "3", "(", *either, ")")
    done = host.run(Action((*find, "-exec", "grep", "-sH", ".", *others, "{}", "+")))
    try:
        return parse(done.stdout)
    except ValueError as error:
        words = done.stderr.decode(errors="replace").strip()
        raise HostError(f"{host.name}: {error} {words}".rstrip()) from error


def cores_busy(host: Host, seconds: float = 1.0) -> float:
    """Return how many cores are at work, from two looks at the host `seconds` apart.

    The load average would still include processes that ended a minute ago; ticks of work are a
    sample of it, which misses what runs between two of them.
    """
    looks = []
    for pause_s in (seconds, 0.0):
        looks.append(unused(host.run(Action(("cat", "/proc/uptime", "/proc/stat"))).check().stdout))
        time.sleep(pause_s)
    (then_s, unused_then_s, _), (now_s, unused_s, cores) = looks
    return max(0.0, cores - (unused_s - unused_then_s) / max(_TICK_S, now_s - then_s))


def unused(raw: bytes) -> tuple[float, float, int]:
    """Return the clock, the seconds that no core worked in, and cores.

    `raw` is /proc/uptime and /proc/stat.  A core that waits for a disk, or whose time another guest
    of the machine has, does not work.
    """
    uptime, *lines = raw.decode().splitlines()
    # user nice system idle iowait irq softirq steal
    ticks = [int(n) for n in lines[0].split()[1:9]]
    cores = sum(1 for line in lines[1:] if line.startswith("cpu"))
    return float(uptime.split()[0]), (ticks[3] + ticks[4] + ticks[7]) * _TICK_S, cores


def parse(raw: bytes) -> Facts:
    """Return the facts in ``FILE:LINE`` lines; raise `ValueError` where memory or cores miss."""
    lines: dict[str, list[str]] = {}
    for line in raw.decode(errors="replace").splitlines():
        path, _, rest = line.partition(":")
        lines.setdefault(path, []).append(rest)
    memory = _fields(lines.get("/proc/meminfo", []), ":")
    processor = _fields(lines.get("/proc/cpuinfo", []), ":")
    system = _fields(lines.get("/etc/os-release", []), "=")
    cores = sum(1 for line in lines.get("/proc/cpuinfo", []) if line.startswith("processor"))
    if "MemTotal" not in memory or not cores:
        raise ValueError(
            "memory and processors cannot be read; look at /proc/meminfo and /proc/cpuinfo there"
        )
    memory_bytes = int(memory["MemTotal"].split()[0]) * 1024
    details = {
        "processor": f"{processor.get('model name', 'unknown')}, {cores} logical",
        "memory": f"{memory_bytes / 2**30:.1f} GiB",
        "system": system.get("PRETTY_NAME", "unknown").strip('"'),
        "kernel": " ".join(lines.get("/proc/version", ["unknown"])[0].split()[2:3]) or "unknown",
    }
    for path, name in _FILES.items():
        if name not in details and path in lines:
            details[name] = lines[path][0]
    details |= _interfaces(lines)
    return Facts(memory_bytes, cores, details, _schedulers(lines))


def _interfaces(lines: Mapping[str, list[str]]) -> dict[str, str]:
    """Return driver and speed of each interface with hardware behind it."""
    found = {}
    for path in lines:
        if path.startswith(_NET) and path.endswith(_DEVICE):
            name = path.removeprefix(f"{_NET}/").removesuffix(_DEVICE)
            driver = _fields(lines[path], "=").get("DRIVER", "driver not known")
            mbit = lines.get(f"{_NET}/{name}/speed", ["-1"])[0]
            known = mbit.isdigit() and int(mbit) not in UNKNOWN_SPEEDS
            speed = f"{int(mbit) / 1000:g} Gbit/s" if known else "speed not known"
            found[f"interface {name}"] = f"{driver}, {speed}"
    return found


def _schedulers(lines: Mapping[str, list[str]]) -> tuple[str, ...]:
    """Return the I/O schedulers that the host's disks offer, in the kernel's order."""
    listed = " ".join(text for path in lines if path.endswith(_SCHEDULER) for text in lines[path])
    return tuple(dict.fromkeys(listed.replace("[", "").replace("]", "").split()))


def _fields(lines: list[str], mark: str) -> dict[str, str]:
    pairs = (line.partition(mark) for line in lines)
    return {key.strip(): value.strip() for key, _, value in pairs}
