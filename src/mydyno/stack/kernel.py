"""Host-wide kernel settings: release, sysctl values, module parameters, transparent huge pages."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mydyno.model import Action, Change, Cost, Probe, Settings, SpecError, unknown_value
from mydyno.model.text import chosen
from mydyno.stack.known import normalise, sysctl_file, twin

RELEASE = "release"
_RUNNING = "/proc/sys/kernel/osrelease"
_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_NAME = re.compile(r"[a-z0-9_][A-Za-z0-9_.:/-]*")
_MODULE = re.compile(r"module\.(?P<module>\w+)\.(?P<parameter>\w+)")
_NO_WAY_BACK = {"module.zfs.zfs_arc_max": "0"}  # what can be left and never set again
_FIXED = {"thp": _THP, RELEASE: _RUNNING}
_SYSCTL = "/proc/sys/"
_VM = "/proc/sys/vm"  # the kernel moves vm.min_free_kbytes with transparent huge pages
_VOLATILE = frozenset({"sysctl.kernel.ns_last_pid"})  # the kernel's own, with every process
_UNIT = re.compile(r"(?P<stem>.*)_(?:bytes|kbytes|ratio)")
# What is missing prints nothing: an unknown name is then refused with its neighbours.
_LOOK = """
for p; do
    if [ -d "$p" ]; then find "$p" -maxdepth 1 -type f -perm -u=rw -exec grep -sH '' {} +
    else grep -sH '' "$p"; fi
done 2>/dev/null; :
"""


@dataclass(frozen=True, slots=True)
class Kernel:
    """Keys `release`, `sysctl.<name>`, `module.<module>.<parameter>`, `thp`; only those in `keys`.

    A release is named in full, or by what it begins with: ``6.1`` is any 6.1.x.
    """

    name: ClassVar[str] = "kernel"
    owned: ClassVar[bool] = False
    at: ClassVar[str] = ""  # a host has one kernel
    keys: tuple[str, ...]

    def observe(self) -> Probe[Settings]:
        """Return the probe for the wanted keys, and all sysctls that stand beside them."""
        return Probe(Action(("sh", "-c", _LOOK, "look", *self._places())), self.parse)

    def parse(self, raw: bytes) -> Settings:
        """Return the values that the kernel showed, blanks made single."""
        known = {path(key): key for key in self.keys}
        lines: dict[str, list[str]] = {}
        for line in raw.decode(errors="replace").splitlines():
            file, _, value = line.partition(":")
            lines.setdefault(known.get(file) or _key(file), []).append(" ".join(value.split()))
        shown = {k: "\n".join(v) for k, v in lines.items() if k not in _VOLATILE}
        shown |= {"thp": chosen(shown["thp"])} if "thp" in shown else {}
        return dict(sorted(shown.items()))

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for a name this kernel does not have.

        Another release comes first and alone: what is set before a reboot is gone after it.
        """
        if RELEASE in want and not same_release(now.get(RELEASE, ""), want[RELEASE]):
            return [_rebooted(now.get(RELEASE, ""), want[RELEASE])]
        plain = {key: _plain(key, value) for key, value in want.items() if key != RELEASE}
        zeroed = {twin(key): "0" for key in plain if twin(key) and plain[key] != "0"}
        wanted = {**{key: zero for key, zero in zeroed.items() if key in now}, **plain}
        for key in sorted(wanted):
            _refuse(key, wanted, now)
        moved = [key for key in sorted(wanted) if now[key] != wanted[key]]
        return [Change(key, now[key], wanted[key], _action(key, wanted)) for key in moved]

    def undo(self, now: Settings, first: Settings) -> Sequence[Change]:
        """Return the changes that restore first values; a zero that comes with its pair is left.

        The first release comes first and alone: what was set goes with the boot.
        """
        gone = sorted(k for k, v in first.items() if k in now and now[k] != v)
        if RELEASE in gone:
            return [_rebooted(now[RELEASE], first[RELEASE])]
        return [Change(k, now[k], first[k], _restoring(k, first)) for k in gone]

    def _places(self) -> list[str]:
        """Return the files to look at; of a sysctl its folder, for one setting may move another."""
        files = [path(key) for key in self.keys]
        folders = [f.rpartition("/")[0] if f.startswith(_SYSCTL) else f for f in files]
        folders = [f if k != RELEASE else path(k) for k, f in zip(self.keys, folders, strict=True)]
        return list(dict.fromkeys((*folders, *([_VM] if "thp" in self.keys else []))))


def _key(file: str) -> str:
    """Return the key of a sysctl's file."""
    return "sysctl." + file.removeprefix(_SYSCTL).translate(str.maketrans("./", "/."))


def _restoring(key: str, first: Settings) -> Action:
    """Return what restores a key; of a pair that shares a meaning, the one that is not zero does.

    The kernel sets the other one to zero then, and may not take a zero for it.
    """
    partners = [other for other in units(key) if first.get(other, "0") != "0"]
    named = partners[0] if partners and first[key] == "0" else key
    return write(named, first[named])


def units(key: str) -> list[str]:
    """Return the names that a sysctl's meaning may have, in any unit; all but one are zero."""
    found = _UNIT.fullmatch(key)
    return [f"{found['stem']}_{unit}" for unit in ("bytes", "kbytes", "ratio")] if found else []


def path(key: str) -> str:
    """Return the file of a key."""
    if key in _FIXED:
        return _FIXED[key]
    if found := _MODULE.fullmatch(key):
        return f"/sys/module/{found['module']}/parameters/{found['parameter']}"
    name = key.removeprefix("sysctl.")
    if not key.startswith("sysctl.") or not _NAME.fullmatch(name) or ".." in name:
        raise SpecError(
            f"kernel.{key}: unknown; "
            "kernel has release, thp, sysctl.<name> and module.<module>.<parameter>"
        )
    return sysctl_file(name)


def write(key: str, value: str) -> Action:
    """Return the command that sets a key until the next boot."""
    if key == "thp" or _MODULE.fullmatch(key):
        return Action(("tee", path(key)), value.encode())
    return Action(("sysctl", "-q", "-w", f"{key.removeprefix('sysctl.')}={value}"))


def same_release(now: str, want: str) -> bool:
    """Return whether a release is the wanted one, or of the wanted line: 6.1.0-56 of 6.1."""
    return now == want or now.startswith((f"{want}.", f"{want}-"))


def _rebooted(before: str, after: str) -> Change:
    """Return the change to another release; a host that can be rebooted carries it out itself."""
    return Change(RELEASE, before, after, Action(("systemctl", "reboot")), Cost.REBOOT)


def _plain(key: str, value: str) -> str:
    """Return a value as the kernel shows it."""
    words = " ".join(value.split())
    if not _MODULE.fullmatch(key):
        return words
    return {"on": "Y", "off": "N"}.get(words.lower(), normalise(words))


def _action(key: str, wanted: Settings) -> Action:
    """Return the command for a change; what its twin sets to zero is left to the twin's."""
    if (other := twin(key)) and wanted[key] == "0":
        return write(other, wanted[other])
    return write(key, wanted[key])


def _refuse(key: str, wanted: Settings, now: Settings) -> None:
    path(key)
    value = wanted[key]
    if key not in now:
        raise SpecError(unknown_value(key, now, "kernel setting", prefix="kernel.", listed=False))
    if key == "thp" and value not in ("always", "madvise", "never"):
        raise SpecError(f"kernel.thp = {value!r}: one of always, madvise, never")
    if _NO_WAY_BACK.get(key) == now[key] != value:
        raise SpecError(
            f"kernel.{key} is {now[key]} here, its own choice, which it does not take again while "
            "the module is loaded: give it a value in /etc/modprobe.d and load the module again"
        )
    other = twin(key)
    if other and value == "0" != now[key] and wanted.get(other, "0") == "0":
        raise SpecError(f"kernel.{key} = 0: the kernel takes no zero: set kernel.{other} instead")
