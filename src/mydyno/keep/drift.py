"""Drift: whether what was kept is stored on a host, and in force there; three columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mydyno.audit.facts import ServerEvidence
from mydyno.audit.host_facts import allocator, allowed_cpus, chosen, cpu_quota, limits
from mydyno.audit.option_files import Option
from mydyno.keep.forms import fstab, native
from mydyno.keep.forms.systemd import CPUS, environment
from mydyno.keep.forms.tmpfiles import places
from mydyno.keep.kept import Kept, KeptFile
from mydyno.model import SpecError
from mydyno.stack.known import granted, normalise, same, sysctl_file
from mydyno.stack.known.allocators import TUNABLES

UNKNOWN, _UNSET = "", "not set"
_SIZES, _BLOCK = ("_size", "_packet", "_length"), 4096
_OPTIONS = 3  # the column of fstab


class DriftRow(msgspec.Struct, frozen=True):
    """One setting: as it was kept, as a file of the host has it, as it is in force.

    `state` is ``kept``, or what happened: ``not stored``, ``not loaded``, ``changed``, ``unknown``.
    `where` is the file that has it.
    """

    key: str
    wanted: str
    stored: str
    effective: str
    where: str
    state: str


@dataclass(frozen=True, slots=True)
class HostFiles:
    """What was read of a host: the text of each file by path, absent where there is none.

    `environment` is that of the server's process, None where it may not be read.
    """

    texts: Mapping[str, str]
    environment: Mapping[str, str] | None = None

    def value(self, path: str) -> str:
        """Return a file's value, of several the one in brackets."""
        return chosen(self.texts.get(path, UNKNOWN).strip())


def paths(kept: Kept) -> list[str]:
    """Return the files of a host that must be read: values in force, and what stores them."""
    values = value_places(kept)
    table = [fstab.PATH] if "fs.mount" in kept.settings else []
    return [*(file.path for file in native.write(kept)), *table, *values]


def value_places(kept: Kept) -> list[str]:
    """Return the files below /proc and /sys that hold the values in force.

    Raises `SpecError` where a name is none, as what was exported may have been changed.
    """
    if refusal := native.refusal(kept):
        raise SpecError(refusal)
    keys = [key for key in kept.settings if key.startswith(("kernel.", "block."))]
    return [place for key in keys for place in places_of(key, kept)]


def drift(kept: Kept, seen: ServerEvidence, files: HostFiles) -> list[DriftRow]:
    """Return each setting that was kept with what the host has of it."""
    options = {option.name: option for option in seen.options()}
    rows = []
    for key, wanted in kept.settings.items():
        present = effective(key, kept, seen, files)
        stored, where = _stored(key, kept, options, files)
        state = _state(key, wanted, stored, present, seen)
        rows.append(DriftRow(key, wanted, stored, present, where, state))
    return rows


def _state(key: str, wanted: str, stored: str, effective: str, seen: ServerEvidence) -> str:
    is_stored = bool(stored) and same(key.removeprefix("mysqld."), stored, wanted)
    if not effective:
        return "unknown" if is_stored else "not stored"
    if is_in_force(key, wanted, effective, seen):
        return "kept" if is_stored else "not stored"
    return "not loaded" if is_stored else "changed"


def is_in_force(key: str, wanted: str, present: str, seen: ServerEvidence) -> bool:
    """Return whether a value is the one that is wanted, or what the server makes of that."""
    if not key.startswith("mysqld."):
        return wanted.split() == present.split()
    name = key.removeprefix("mysqld.")
    now, asked = normalise(present), normalise(wanted)
    if granted(name, {**seen.variables, name: present}, wanted):
        return True
    # sizes are rounded down, to what is a multiple of a block at most
    sizes = name.endswith(_SIZES) and now.isdigit() and asked.isdigit()
    return sizes and 0 <= int(asked) - int(now) < min(_BLOCK, int(asked))


_OF_PROCESS = {"limits": limits, "cgroup": cpu_quota}


def effective(key: str, kept: Kept, seen: ServerEvidence, files: HostFiles) -> str:
    """Return the value in force, of disks that differ each one's; ``""`` where it is not seen."""
    layer, _, name = key.partition(".")
    if layer == "mysqld":
        return seen.variables.get(name, UNKNOWN)
    if layer in {"block", "kernel"}:
        return _of_all(places_of(key, kept), files)
    if key == "fs.mount":
        return _mounted(kept.settings[key], seen.host.get("mount", ""))
    return _of_process(key, kept, seen, files)


def _of_process(key: str, kept: Kept, seen: ServerEvidence, files: HostFiles) -> str:
    layer, _, name = key.partition(".")
    if layer in _OF_PROCESS:
        return _OF_PROCESS[layer](seen.host).get(name, UNKNOWN)
    if layer == "cpus":
        return allowed_cpus(seen.host) or UNKNOWN
    if key == "alloc.library":
        return allocator(seen.host)
    own = environment(kept)
    names = [name] if layer == "env" else [one for one in TUNABLES.values() if one in own]
    if files.environment is None or not names:
        return UNKNOWN
    return files.environment.get(names[0], _UNSET)


def _of_all(places: Sequence[str], files: HostFiles) -> str:
    values = [files.value(place) for place in places]
    if len(set(values)) > 1 and UNKNOWN not in values:
        pairs = zip(places, values, strict=True)
        return ", ".join(f"{value} on {place.split('/')[3]}" for place, value in pairs)
    return min(values, default=UNKNOWN)


def places_of(key: str, kept: Kept) -> list[str]:
    """Return the files below /proc or /sys of a setting of the kernel, or of each disk."""
    name = key.partition(".")[2]
    if key.startswith("block."):
        attribute = name.replace(".", "/")
        return [f"/sys/block/{disk}/queue/{attribute}" for disk, _ in kept.target.disks]
    if name.startswith("sysctl."):
        return [sysctl_file(name.removeprefix("sysctl."))]
    return [places(kept).get(key, "")]


def _mounted(wanted: str, present: str) -> str:
    """Return the options that are wanted if all are in force, else those in force."""
    options = set(present.partition(" ")[2].split(","))
    return wanted if options >= set(wanted.split(",")) else ",".join(sorted(options - {""}))


def _stored(
    key: str, kept: Kept, options: Mapping[str, Option], files: HostFiles
) -> tuple[str, str]:
    """Return the value that a file of the host has, and the file."""
    layer, _, name = key.partition(".")
    if layer == "mysqld":
        option = options.get(name)
        return (option.value, option.where) if option else (UNKNOWN, UNKNOWN)
    if key == "fs.mount":
        return _in_table(kept, files)
    file = _file(key, kept)
    if file is None or file.path not in files.texts:
        return UNKNOWN, UNKNOWN
    own = [line for line in file.text.splitlines() if line and line[0] not in "#["]
    there = {line.strip() for line in files.texts[file.path].splitlines()}
    mine = [line for line in own if _names(key, kept, line)]
    found = bool(mine) and all(line.strip() in there for line in mine)
    return (kept.settings[key] if found else UNKNOWN), file.path


def _in_table(kept: Kept, files: HostFiles) -> tuple[str, str]:
    """Return the mount options that the table of filesystems has, those that are wanted if all."""
    rows = [line.split() for line in files.texts.get(fstab.PATH, "").splitlines()]
    mine = [row for row in rows if len(row) > _OPTIONS and row[1] == kept.target.mount]
    if not mine:
        return UNKNOWN, UNKNOWN
    return _mounted(kept.settings["fs.mount"], f" {mine[-1][_OPTIONS]}"), fstab.PATH


def _file(key: str, kept: Kept) -> KeptFile | None:
    """Return our file that sets a key; None for a key that no native form carries."""
    parts = (form.write(part)[0] for form, part in native.parts(kept) if key in part.settings)
    return next(parts, None)


def _names(key: str, kept: Kept, line: str) -> bool:
    """Return whether a line of one of our files sets this key."""
    layer, _, name = key.partition(".")
    if layer == "alloc":
        return any(word in line for word in ("LD_PRELOAD", *TUNABLES.values()))
    if layer == "env":
        return name in environment(kept) and f"{name}=" in line
    if layer == "limits":
        return line.lower().startswith(f"limit{name}")
    if key in CPUS:
        return line.startswith(f"{CPUS[key]}=")
    if layer == "kernel":
        return (name.removeprefix("sysctl.") in line) or places(kept).get(key, "\0") in line
    return name.replace("iosched.", "iosched/") in line
