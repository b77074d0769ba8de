"""What the outputs of a host's commands say of machine, disk, filesystem and process."""

import re
from collections.abc import Mapping, Sequence

from mydyno.audit.expression import Value
from mydyno.audit.option_files import number
from mydyno.model.text import chosen, quota_text
from mydyno.stack.known.allocators import ALLOCATORS, GLIBC

_SHOWN = 3  # of a list in a message


def listed(kind: str, lines: Sequence[str]) -> dict[str, Value]:
    """Return how many there are, and the first of them as text."""
    more = f"; and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
    text = "; ".join(lines[:_SHOWN]) + more
    return {f"fact.{kind}": float(len(lines)), f"fact.{kind}_list": text}


def plain(text: str) -> Value:
    """Return a value as it is compared: a number where it is one, else the text (ON stays ON)."""
    found = re.fullmatch(r"[+-]?\d+(\.\d+)?", text.strip())
    return float(text) if found else text.strip()


_KIB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
_LIMITS = {
    "nofile": r"Max open files\s+(\S+)",
    "memlock": r"Max locked memory\s+(\S+)",
    "nproc": r"Max processes\s+(\S+)",
}
_UNLIMITED, _NO_LIMIT = 2.0**63, 2.0**60
_SIZES = {
    "meminfo": {
        "host.memory": "MemTotal",
        "host.available": "MemAvailable",
        "host.swap": "SwapTotal",
    },
    "process": {"process.rss": "VmRSS", "process.peak": "VmHWM", "process.swapped": "VmSwap"},
}
_PAIRS = {"sysctl": "sysctl.", "queue": "disk.", "system": "host."}


def limits(host: Mapping[str, str]) -> dict[str, str]:
    """Return the soft limits of the server's process, a number or ``unlimited`` each."""
    text = host.get("limits", "")
    found = {name: re.search(pattern, text) for name, pattern in _LIMITS.items()}
    return {name: match[1] for name, match in found.items() if match}


def allowed_cpus(host: Mapping[str, str]) -> str:
    """Return the CPUs that the server's process may run on (``0-3,8``), ``""`` if not read."""
    found = re.search(r"^Cpus_allowed_list:\s+(\S+)", host.get("process", ""), re.MULTILINE)
    return found[1] if found else ""


def cpu_quota(host: Mapping[str, str]) -> dict[str, str]:
    """Return `cpu` and `period` of the server's control group, nothing where they are not read.

    One without a quota has the `cpu` ``unlimited``.
    """
    found = re.search(r"^cpu_max=(\d+|max) (\d+)", host.get("cgroup", ""), re.MULTILINE)
    if not found:
        return {}
    return quota_text(None if found[1] == "max" else int(found[1]), int(found[2]))


def allocator(host: Mapping[str, str], variables: Mapping[str, str]) -> str:
    """Return the allocator of the server's process; ``""`` where its maps were not read.

    MariaDB names one that is part of the program, which is in no maps.
    """
    contained = variables.get("version_malloc_library", "")
    if named := [name for name in ALLOCATORS if name in contained]:
        return named[0]
    if "maps" not in host:
        return ""
    return next((name for name in ALLOCATORS if name in host["maps"]), GLIBC)


def section(host: Mapping[str, str], name: str) -> dict[str, str]:
    """Return the lines ``key=value`` of a command's output; those without a value are left out."""
    pairs = (line.partition("=") for line in host.get(name, "").splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs if value.strip()}


def of_host(host: Mapping[str, str]) -> dict[str, Value]:
    """Return what the outputs of a host's commands hold; each is left out where it was not read."""
    found: dict[str, Value] = {}
    for name, named in _SIZES.items():
        sizes = dict(_KIB.findall(host.get(name, "")))
        found |= {fact: 1024.0 * float(sizes[k]) for fact, k in named.items() if k in sizes}
    if parts := _resident(host.get("process", "")):
        found["process.rss"] = parts
    for name, limit in limits(host).items():
        found[f"limit.{name}"] = _UNLIMITED if limit == "unlimited" else float(limit)
    for name, prefix in _PAIRS.items():
        found |= {prefix + k: plain(chosen(v)) for k, v in section(host, name).items()}
    sizes = {key: number(value) for key, value in section(host, "cgroup").items()}
    found |= {f"cgroup.{k}": size for k, size in sizes.items() if size and size < _NO_LIMIT}
    found |= _of_mount(host.get("mount", ""))
    if host.get("unit", "").strip():
        found["host.unit"] = host["unit"].strip()
    return found | _of_files(host, found)


def _resident(status: str) -> float:
    """Return the bytes that a process has for itself, 0 where the kernel does not show them.

    Its huge pages are among them, and mapped files, as Galera's cache, are not.
    """
    sizes = dict(_KIB.findall(status))
    named = ("RssAnon", "RssShmem", "HugetlbPages")
    return 1024.0 * sum(float(sizes[name]) for name in named) if {*named} <= {*sizes} else 0.0


def _of_files(host: Mapping[str, str], mount: Mapping[str, Value]) -> dict[str, Value]:
    """Return which settings in files of the host are not those in force."""
    found: dict[str, Value] = {}
    if "limits_conf" in host:
        found["host.limits_conf"] = float(len(host["limits_conf"].splitlines()))
    if "sysctl_files" in host:
        last = {row[1]: row for row in sysctl_rows(host["sysctl_files"])}
        lines = [
            f"{path} sets {key} = {wanted}, in force is {present}"
            for path, key, wanted, present in last.values()
            if wanted.split() != present.split()
        ]
        found |= listed("sysctl", lines)
    if "modes" in host:
        rows = (line.partition("=") for line in host["modes"].splitlines())
        open_ = [path for path, _, mode in rows if int(mode[-1:] or "0") & _WRITABLE]
        found |= listed("unread", open_)
    if "fstab" in host and "mount" in host:
        asked = ",".join(host["fstab"].split()).split(",")
        missing = [o for o in asked if o.partition("=")[0] in _MOUNTED and not _in_force(o, mount)]
        found |= listed("fstab", missing)
    return found


_WRITABLE = 2  # of a mode's digit
# options that the list of mounts shows where they are in force
_MOUNTED = {"noatime", "nodiratime", "discard", "commit", "data", "barrier", "nobarrier"}


def _in_force(option: str, mount: Mapping[str, Value]) -> bool:
    key, mark, value = option.partition("=")
    present = mount.get(f"mount.{key}")
    if (key, value) in {("barrier", "1"), ("data", "ordered")}:  # a default is not shown
        return present in {None, plain(value)} and f"mount.no{key}" not in mount
    return present is not None and (not mark or present == plain(value))


_COLUMNS = 4  # path, key, value in the file, value in force


def sysctl_rows(text: str) -> list[tuple[str, str, str, str]]:
    """Return file, name, its value there, and the one in force, in the order they are read."""
    rows = (line.split("\t", _COLUMNS - 1) for line in text.splitlines())  # values may have tabs
    return [
        (row[0], row[1], row[2].strip(), row[3].strip()) for row in rows if len(row) == _COLUMNS
    ]


def _of_mount(text: str) -> dict[str, Value]:
    """Return type and options of the filesystem: ``ext4 rw,noatime,barrier=0``."""
    kind, _, options = text.strip().partition(" ")
    if not kind:
        return {}
    found: dict[str, Value] = {"mount.type": kind}
    for option in options.split(","):
        key, mark, value = option.strip().partition("=")
        if re.fullmatch(r"\w+", key):
            found[f"mount.{key}"] = plain(value) if mark else 1.0
    return found
