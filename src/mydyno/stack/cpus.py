"""The CPUs that a private server may run on, and apart from it its load: `cpus.allowed`.

Where both have CPUs of their own, neither takes time from the other, and `mydyno diagnose` slows
them apart.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mydyno.model import Action, Change, Probe, Settings, SpecError, unknown_value
from mydyno.stack.launch_file import OWNED, Server, changes, parse
from mydyno.stack.protocol import StackSettings, full_key, spec_key

KEY = "allowed"
ROLES = {"server": "db", "load": "load"}
"""Who has CPUs of its own, and the role that its setting is given in."""
_MOST = 4096
_SHOWN = "Cpus_allowed_list:"


@dataclass(frozen=True, slots=True)
class Cpus:
    """Key `allowed`: the CPUs of the server's process, as `taskset -c` takes them (``0-3,8``)."""

    name: ClassVar[str] = "cpus"
    owned: ClassVar[bool] = True
    server: Server

    def observe(self) -> Probe[Settings]:
        """Return the probe for the CPUs that the process may run on."""
        return Probe(self.server.look("status"), parse_cpus)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the change; raise `SpecError` for another key or what is no list of CPUs."""
        wanted = {key: listed(cpus(key, value)) for key, value in want.items()}
        lines = [f"{key}={value}" for key, value in wanted.items()]
        return changes(now, wanted, {KEY: "inherited"}, self.server.write(lines))


def parse_cpus(raw: bytes) -> Settings:
    """Return the CPUs of the running process, else those that its launch file asks for."""
    seen = parse(raw)
    if KEY not in seen.own:
        return {}
    lines = [line for line in seen.files.get("status", []) if line.startswith(_SHOWN)]
    return {KEY: lines[0].split()[1] if lines else seen.own[KEY], OWNED: KEY}


def cpus(key: str, text: str) -> frozenset[int]:
    """Return the CPUs of a list such as ``0-3,8``; raise `SpecError` for anything else."""
    if key != KEY:
        raise SpecError(unknown_value(key, (KEY,), "setting", prefix="cpus."))
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        numbers = [number for number in (first, last if dash else first) if number.isascii()]
        if not all(map(str.isdigit, numbers)) or len(numbers) < 2 or int(numbers[1]) >= _MOST:  # noqa: PLR2004 - first and last
            raise SpecError(f"cpus.{key} = {text!r}: write CPUs by number, such as 0-3,8")
        found |= {*range(int(numbers[0]), int(numbers[1]) + 1)}
    if not found:
        raise SpecError(f"cpus.{key} = {text!r}: a range ends before it begins")
    return frozenset(found)


def listed(numbers: frozenset[int]) -> str:
    """Return CPUs as the kernel lists them: ranges, in order."""
    made: list[list[int]] = []
    for number in sorted(numbers):
        if made and number == made[-1][-1] + 1:
            made[-1][1:] = [number]
        else:
            made.append([number])
    return ",".join("-".join(map(str, each)) for each in made)


def online() -> Probe[frozenset[int]]:
    """Return the probe for the CPUs of a host."""
    shown = Action(("cat", "/sys/devices/system/cpu/online"))
    return Probe(shown, lambda raw: cpus(KEY, raw.decode().strip()))


def validate(settings: StackSettings, there: Mapping[str, frozenset[int]]) -> None:
    """Raise `SpecError` for CPUs that are no list, or that a role's host is known not to have."""
    for role in ROLES.values():
        for key, value in settings.of("cpus", role).items():
            wanted = cpus(key, value)
            if missing := wanted - there.get(role, wanted):
                raise SpecError(
                    f"{spec_key(full_key('cpus', key, role))} = {value!r}: no CPU "
                    f"{listed(missing)} on its host; write some of {listed(there[role])}"
                )


def apart(settings: StackSettings) -> Mapping[str, frozenset[int]]:
    """Return the CPUs of server and load, where both have some and share none; else nothing."""
    found = {
        who: cpus(KEY, text)
        for who, role in ROLES.items()
        if (text := settings.of("cpus", role).get(KEY))
    }
    if len(found) < len(ROLES) or frozenset.intersection(*found.values()):
        return {}
    return found


def pinned(settings: StackSettings, role: str, argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command as one that runs on the CPUs that its role is given."""
    text = settings.of("cpus", role).get(KEY)
    return ("taskset", "-c", listed(cpus(KEY, text)), *argv) if text else tuple(argv)
