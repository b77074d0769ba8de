"""The resource limits of a systemd service: one drop-in of ours, verified in /proc/PID/limits."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mydyno.model import Action, Change, Cost, Probe, Settings, SpecError, unknown_value
from mydyno.stack.known import normalise
from mydyno.stack.launch_file import install
from mydyno.stack.limits import ROWS

FILE = "zz-mydyno.conf"
_DIRECTIVES = {"nofile": "LimitNOFILE", "nproc": "LimitNPROC", "memlock": "LimitMEMLOCK"}
_VALUE = re.compile(r"\d+|unlimited")
_WAS = "# was "
_PROPERTIES = "DropInPaths,LimitNOFILESoft,LimitNPROCSoft,LimitMEMLOCKSoft"
_RELOAD = Action(("systemctl", "daemon-reload"))
# First what systemd knows, then the drop-in, then what the kernel holds the process to.
_PROGRAM = """
systemctl show --property="$2" -- "$1"
sed 's/^/own\\t/' "$3" 2>/dev/null
pid=$(systemctl show --property=MainPID --value -- "$1")
[ "$pid" = 0 ] || sed 's/^/limits\\t/' "/proc/$pid/limits" 2>/dev/null
exit 0
"""


@dataclass(frozen=True, slots=True)
class ServiceLimits:
    """Keys `nofile` (files), `nproc` (processes), `memlock` (bytes) of the service `unit`.

    The drop-in notes what each limit was, so that going back to that removes it.
    """

    unit: str
    name: str = "limits"

    @property
    def owned(self) -> bool:
        """Return that the service is the host's."""
        return False

    @property
    def folder(self) -> str:
        """Return the folder of its drop-ins."""
        return f"/etc/systemd/system/{self.unit}.d"

    def observe(self) -> Probe[Settings]:
        """Return the probe for the limits that its process has, or would be started with."""
        file = f"{self.folder}/{FILE}"
        return Probe(Action(("sh", "-c", _PROGRAM, "look", self.unit, _PROPERTIES, file)), parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes, one step at a time: the drop-in, systemd's reload, the restart.

        Raise `SpecError` for an unknown limit or a value that is none.
        """
        wanted = {key: _value(key, value) for key, value in want.items()}
        # what the drop-in sets goes before what the process has: it may not be restarted yet
        held = {**{key: now[key] for key in wanted if key in now}, **_with_prefix(now, "set.")}
        was = {k: now.get(f"was.{k}", now.get(f"unit.{k}", "")) for k in {*wanted, *held}}
        aim = {**{k: v for k, v in held.items() if f"set.{k}" in now}, **wanted}
        ours = {key: value for key, value in aim.items() if value != was.get(key)}
        moved = sorted(key for key, value in wanted.items() if now.get(key) != value)
        if not moved:
            return []
        action = self._step(now, ours, was)
        return [Change(k, now.get(k, ""), wanted[k], action, Cost.RESTART) for k in moved]

    def _step(self, now: Settings, ours: Mapping[str, str], was: Mapping[str, str]) -> Action:
        there = _with_prefix(now, "set.")
        if not there and FILE in now.get("unit.files", ""):
            return _RELOAD  # it was removed; what the unit sets by itself is seen after that
        if ours != there:
            file = f"{self.folder}/{FILE}"
            if not ours:
                return Action(("rm", "-f", "--", file))
            command = install(Path(file), drop_in(ours, was))
            return Action((command.argv[0], "-D", *command.argv[1:]), command.stdin)
        if _stale(now, ours):
            return _RELOAD
        return Action(("systemctl", "restart", self.unit))


def drop_in(ours: Mapping[str, str], was: Mapping[str, str]) -> str:
    """Return the text of the drop-in: what each limit was, and what it is to be."""
    before = [f"{_WAS}{key}={was[key]}" for key in sorted(ours)]
    words = {key: "infinity" if value == "unlimited" else value for key, value in ours.items()}
    limits = [f"{_DIRECTIVES[key]}={words[key]}" for key in sorted(words)]
    return "\n".join(("# owned by mydyno", *before, "[Service]", *limits, ""))


def _stale(now: Settings, ours: Mapping[str, str]) -> bool:
    """Return whether systemd has not read the drop-in as it is.

    Its own NeedDaemonReload does not see a folder of drop-ins that is new (systemd 252).
    """
    known = FILE in now.get("unit.files", "")
    return known != bool(ours) or any(now.get(f"unit.{k}") != v for k, v in ours.items())


def parse(raw: bytes) -> Settings:
    """Return the limits in force, with what the drop-in sets (``set.``) and notes (``was.``).

    What systemd would start the service with (``unit.``) holds where it does not run.
    """
    shown: dict[str, str] = {}
    for line in raw.decode(errors="replace").splitlines():
        tag, tab, text = line.partition("\t")
        if not tab:
            shown |= _property(line)
        elif tag == "own":
            shown |= _own(text)
        else:
            title = next((k for k, row in ROWS.items() if text.startswith(row)), "")
            shown |= {title: text.removeprefix(ROWS[title]).split()[0]} if title else {}
    down = {key: shown[f"unit.{key}"] for key in _DIRECTIVES if f"unit.{key}" in shown}
    return {**down, **shown}


def _property(line: str) -> dict[str, str]:
    name, _, value = line.partition("=")
    plain = "unlimited" if value == "infinity" else value
    keys = {f"{directive}Soft": key for key, directive in _DIRECTIVES.items()}
    if name == "DropInPaths":
        return {"unit.files": value}
    return {f"unit.{keys[name]}": plain} if name in keys else {}


def _own(text: str) -> dict[str, str]:
    name, equals, value = text.removeprefix(_WAS).partition("=")
    plain = "unlimited" if value == "infinity" else value
    if text.startswith(_WAS) and equals:
        return {f"was.{name}": plain}
    keys = {directive: key for key, directive in _DIRECTIVES.items()}
    return {f"set.{keys[name]}": plain} if name in keys else {}


def _with_prefix(now: Settings, prefix: str) -> dict[str, str]:
    return {k.removeprefix(prefix): v for k, v in now.items() if k.startswith(prefix)}


def _value(key: str, value: str) -> str:
    if key not in _DIRECTIVES:
        raise SpecError(unknown_value(key, _DIRECTIVES, "setting", prefix="limits."))
    plain = normalise(value).lower()
    if not _VALUE.fullmatch(plain):
        raise SpecError(f"limits.{key} = {value!r}: an integer or unlimited")
    return plain
