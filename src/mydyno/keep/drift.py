"""Drift: whether what was kept is stored on a host, and in force there; three columns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import msgspec

from mydyno.audit.facts import ServerEvidence
from mydyno.audit.host_facts import (
    allocator,
    allowed_cpus,
    cpu_quota,
    limits,
    sysctl_rows,
)
from mydyno.audit.option_files import Option, every, groups
from mydyno.keep.forms import fstab, native
from mydyno.keep.forms.systemd import CPUS, environment
from mydyno.keep.forms.tmpfiles import places
from mydyno.keep.kept import Kept, KeptFile
from mydyno.model import RefusedError, SpecError
from mydyno.model.text import chosen
from mydyno.stack.known import granted, normalise, same, sysctl_file
from mydyno.stack.known.allocators import TUNABLES

UNKNOWN, _UNSET = "", "not set"
OPTIONS = "MYSQLD_OPTS"
OF_LEASE = "MYDYNO_LEASE"  # in the environment of a process that the drop-in of a lease started
_SIZES, _BLOCKS = ("_size", "_packet", "_length"), (1024, 4096)
_BYTES = 1 << 16  # from here on, what has such a name counts bytes
_OPTIONS = 3  # the column of fstab
_SYSCTL = "kernel.sysctl."


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


@dataclass(frozen=True, slots=True)
class Remount:
    """How the data's filesystem is remounted: options before and with the change, two commands.

    An undo takes away what the lease had `added`; what others have added stays.
    """

    before: str
    wanted: str
    forth: Sequence[str]
    back: Sequence[str]
    added: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Scene:
    """What was read of the host before anything is planned.

    `texts` are the exact texts of files, None for one that is absent; `unit` is what ``systemctl
    cat`` prints, `environment` the unit's own, `running` that of the server's process, `words` its
    command line; `dynamic` names the variables that the server takes while it runs.  `along` is
    what kernel or server move along with each setting, by full key, with present values: of each
    disk, or one.
    """

    seen: ServerEvidence
    files: HostFiles
    texts: Mapping[str, str | None]
    unit: str
    environment: Mapping[str, str]
    dynamic: frozenset[str]
    remount: Remount | None = None
    running: Mapping[str, str] = field(default_factory=dict)
    words: Sequence[str] = ()
    along: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)

    @property
    def start(self) -> str:
        """Return the command of the server's unit, the last one that it gives."""
        lines = self.unit.replace("\\\n", " ").splitlines()
        starts = [line for line in map(str.lstrip, lines) if line.startswith("ExecStart=")]
        return starts[-1].partition("=")[2].strip() if starts else ""

    @property
    def given(self) -> set[str]:
        """Return the variables that the server's command sets, whatever option files hold.

        A process that a lease started has the lease's options, too, and the next one has not.
        """
        words = [*self.start.split(), *self.environment.get(OPTIONS, "").split()]
        words += () if OF_LEASE in self.running else self.words
        return {word[2:].partition("=")[0].replace("-", "_") for word in words if word[:2] == "--"}


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
        stored, where = _later(key, wanted, where, seen) or (stored, where)
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
    if key == "fs.mount":
        return set(wanted.split(",")) <= set(present.split(","))
    if not key.startswith("mysqld."):
        return wanted.split() == present.split()
    name, now, asked = key.removeprefix("mysqld."), normalise(present), normalise(wanted)
    if granted(name, {**seen.variables, name: present}, wanted):
        return True
    if not (name.endswith(_SIZES) and asked.isdigit() and int(asked) >= _BYTES):
        return False
    # a size is rounded down to a unit, which few servers report; a count, as of threads, is not
    return now in {str(int(asked) // block * block) for block in _BLOCKS}


_OF_PROCESS = {"limits": limits, "cgroup": cpu_quota}


def effective(key: str, kept: Kept, seen: ServerEvidence, files: HostFiles) -> str:
    """Return the value in force, of disks that differ each one's; ``""`` where it is not seen."""
    layer, _, name = key.partition(".")
    if layer == "mysqld":
        return seen.variables.get(name, UNKNOWN)
    if layer in {"block", "kernel"}:
        return _of_all(places_of(key, kept), files)
    if key == "fs.mount":
        return ",".join(sorted({*seen.host.get("mount", "").partition(" ")[2].split(",")} - {""}))
    return _of_process(key, kept, seen, files)


def _of_process(key: str, kept: Kept, seen: ServerEvidence, files: HostFiles) -> str:
    layer, _, name = key.partition(".")
    if layer in _OF_PROCESS:
        return _OF_PROCESS[layer](seen.host).get(name, UNKNOWN)
    if layer == "cpus":
        return allowed_cpus(seen.host) or UNKNOWN
    if key == "alloc.library":
        return allocator(seen.host, seen.variables)
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
    wanted, there = kept.settings["fs.mount"], mine[-1][_OPTIONS]
    return wanted if {*wanted.split(",")} <= {*there.split(",")} else there, fstab.PATH


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


def _later(key: str, wanted: str, where: str, seen: ServerEvidence) -> tuple[str, str] | None:
    """Return another value and its file, where that is read after ours and sets the same sysctl."""
    name = key.removeprefix(_SYSCTL).replace("/", ".")
    every_row = sysctl_rows(seen.host.get("sysctl_files", ""))
    rows = [row for row in every_row if row[1].replace("/", ".") == name]
    folder = where.rpartition("/")[0]
    later = [row for row in rows if row[0] > where and row[0].rpartition("/")[0] == folder]
    if not (where and key.startswith(_SYSCTL) and later):
        return None
    path, _, value, _ = later[-1]
    return None if value.split() == wanted.split() else (value, path)


def refuse_losing(
    wanted: Mapping[str, str], where: Mapping[str, str], texts: Mapping[str, str], scene: Scene
) -> None:
    """Raise `RefusedError` for a setting that something else sets after the file that keeps it.

    `where` is that file of each setting that is `wanted`, and `texts` are those that are written.
    """
    seen = scene.seen
    read = groups(seen.flavour, seen.version, seen.suffix)
    last = {option.name: option for option in every(seen.start, seen.files | dict(texts), read)}
    for key, value in wanted.items():
        name, path = key.removeprefix("mysqld."), where.get(key, "")
        if key.startswith("mysqld.") and name in scene.given:
            raise RefusedError(
                f"{seen.host.get('unit', '').strip()}: gives --{name} in its command or "
                "environment, which wins over option files; take it out there, and restart the "
                "server"
            )
        option = last.get(name) if key.startswith("mysqld.") else None
        other = option.where if option and option.path != path else ""
        other = other or (_later(key, value, path, seen) or ("", ""))[1]
        if other:
            raise RefusedError(
                f"{other}: is read after {path} and sets {name}, too; take it out there first"
            )
