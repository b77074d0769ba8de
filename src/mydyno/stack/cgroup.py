"""The CPU time of a private server, as containers and units are given it: `cgroup.cpu`.

The server starts in a control group of its own, of version 1 or 2, which is removed when it has
stopped.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import ClassVar

from mydyno.model import Action, Change, Cost, Probe, Settings, SpecError
from mydyno.model.text import quota_text
from mydyno.stack import launch_file
from mydyno.stack.launch_file import OWNED, Server
from mydyno.stack.protocol import refuse_unknown

CPU, PERIOD = "cpu", "period"
KEYS = (CPU, PERIOD)
KIND = "control group"
_PERIOD_US = 100_000  # the kernel's own, which container runtimes and systemd keep
_LEAST_US = 1000  # the kernel takes no shorter quota or period
_LONGEST_US, _MOST_US = 1_000_000, 1 << 40
_QUOTA = "max"  # the line of the launch file that holds both as cpu.max does
_NONE = {CPU: "unlimited", PERIOD: "100ms"}
_CPU = re.compile(r"(\d+(?:\.\d{1,2})?)%")  # systemd has no finer shares
_TIME = re.compile(r"(\d+)ms")

_SCRIPT = files(__package__).joinpath("cgroup.sh").read_text()


@dataclass(frozen=True, slots=True)
class Cgroup:
    """Keys `cpu`, the CPU time that is left in each `period`: ``150%`` is that of one CPU and half.

    A quota is changed while the server runs; one that it did not start with needs a restart.
    """

    name: ClassVar[str] = "cgroup"
    owned: ClassVar[bool] = True
    server: Server

    @property
    def group(self) -> str:
        """Return the name of the server's control group."""
        return group_of(self.server.own.parent.parent)

    def observe(self) -> Probe[Settings]:
        """Return the probe for the quota of the running server's group."""
        own = (str(self.server.own), str(self.server.pid_file))
        return Probe(Action(_script("show", self.group, *own)), parse_cgroup)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for another key or a value that cannot be."""
        wanted, lines = normal(want)
        found = launch_file.changes(now, wanted, _NONE, self.server.write(lines))
        inside = CPU in now and CPU in wanted
        return [replace(change, cost=Cost.ONLINE) for change in found] if inside else found

    def online(self, changes: Sequence[Change]) -> Sequence[Action]:
        """Return the command that gives the running server's group the quota of the own file."""
        words = _script("online", self.group, str(self.server.own))
        return [Action(words)] if changes else []


def group_of(home: Path) -> str:
    """Return the name of the control group of the server in this folder."""
    return f"mydyno-{hashlib.blake2s(str(home).encode(), digest_size=8).hexdigest()}"


def joined(home: Path, launch: Mapping[str, str], argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command as one that runs in the group that its launch file asks for.

    It ends with who starts it from its first step on, as systemd may take a while to answer.
    """
    if _QUOTA not in launch:
        return tuple(argv)
    script = _script("join", group_of(home), launch[_QUOTA], *argv)
    return ("setpriv", "--pdeathsig", "KILL", *script)


def removal(group: str) -> Action:
    """Return the command that removes a control group of ours, if it is there."""
    return Action(_script("remove", group))


def refusal() -> Probe[str]:
    """Return the probe for why no server can have a quota on a host, ``""`` where it can."""
    return Probe(Action(_script("refusal", "")), lambda raw: raw.decode(errors="replace").strip())


def _script(*words: str) -> tuple[str, ...]:
    return ("sh", "-c", _SCRIPT, "cgroup.sh", *words)


def parse_cgroup(raw: bytes) -> Settings:
    """Return the quota of the running server's group, else what its launch file asks for."""
    seen = launch_file.pairs(raw.decode(errors="replace").splitlines())
    found = {key: seen[key] for key in KEYS if key in seen}
    if "now" in seen:  # it runs; outside of its group, or in one without a quota, that is empty
        quota_us, _, period_us = seen["now"].strip().partition(" ")
        free = not (quota_us.isdecimal() and period_us.isdecimal())
        in_force = _NONE if free else quota_text(int(quota_us), int(period_us))
        found |= {key: value for key, value in in_force.items() if key in found}
    return {**found, OWNED: ",".join(found)} if found else {}


def normal(want: Settings) -> tuple[dict[str, str], list[str]]:
    """Return the settings as the kernel keeps them, to the microsecond, and the own file.

    Raise `SpecError` for another key or a value that cannot be.
    """
    refuse_unknown(want, KEYS, "cgroup")
    if not want:
        return {}, []
    if CPU not in want:
        raise SpecError("cgroup.period: is that of a quota; set cgroup.cpu, too")
    period_us = _microseconds(want.get(PERIOD, ""))
    quota_us = _quota(want[CPU], period_us)
    made = {key: value for key, value in quota_text(quota_us, period_us).items() if key in want}
    lines = [f"{key}={value}" for key, value in made.items()]
    return made, [*lines, f"{_QUOTA}={quota_us} {period_us}"]


def _microseconds(text: str) -> int:
    if not text:
        return _PERIOD_US
    found = _TIME.fullmatch(text)
    us = int(found[1]) * 1000 if found else 0
    if not _LEAST_US <= us <= _LONGEST_US:
        raise SpecError(f"cgroup.period = {text!r}: write it as 100ms, from 1ms to 1000ms")
    return us


def _quota(text: str, period_us: int) -> int:
    found = _CPU.fullmatch(text)
    us = round(float(found[1]) * 100) * period_us // 10_000 if found else 0
    if not _LEAST_US <= us <= _MOST_US:
        least = 100 * _LEAST_US / period_us
        raise SpecError(
            f"cgroup.cpu = {text!r}: write a share of one CPU's time, such as 150%, with up to two "
            f"decimals; with this period, {least:g}% or more"
        )
    return us
