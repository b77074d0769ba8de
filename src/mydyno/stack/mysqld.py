"""The variables of a private server: one option file that holds exactly what is wanted."""

import math
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import ClassVar

from mydyno.model import Action, Change, Cost, Durability, Probe, Settings, SpecError, quoted
from mydyno.stack import launch_file
from mydyno.stack.flavours import quirks
from mydyno.stack.known import granted, needs_restart, normalise, switch
from mydyno.stack.known.variables import COMPANIONS, RENAMED, UPPER, Variable, refusals
from mydyno.stack.launch_file import OWNED

_LOSES_NOTHING = 0.0


def durability(key: str, before: str, after: str) -> Durability:
    """Return WEAKER if `after` may lose or corrupt what `before` would keep, else SAME."""
    weaker = _weakness(key, after) > _weakness(key, before)
    return Durability.WEAKER if weaker else Durability.SAME


def _weakness(key: str, value: str) -> float:
    """Return 0 for the safe values, more for weaker ones; only its order has a meaning."""
    plain = normalise(value).casefold()
    if key == "sync_binlog":
        return _unsynced_groups(plain)
    if key == "innodb_flush_log_at_timeout" and plain.isdigit():
        return float(max(int(plain), 1) - 1)  # more seconds of commits than the usual one
    for step, values in enumerate(_table().get(key, []), 1):
        if plain in values.split():
            return float(step)
    return _LOSES_NOTHING


def _unsynced_groups(plain: str) -> float:
    """Return how many commit groups of the binary log a power cut may take; 0 is any number."""
    if not plain.isdigit():
        return _LOSES_NOTHING
    return math.inf if int(plain) == 0 else float(int(plain) - 1)


@cache
def _table() -> dict[str, list[str]]:
    text = resources.files("mydyno.stack.known").joinpath("durability.toml").read_text("utf-8")
    return tomllib.loads(text)


_QUESTION = b"SHOW GLOBAL VARIABLES;\n"
_HEADER = "# owned by mydyno: exactly the settings of the present treatment\n[mysqld]\n"
_ANSWERED = "version"  # every server shows it, and no file sets it
_PLAIN = re.compile(r"[\w.:/+@%,=-]*")


@dataclass(frozen=True, slots=True)
class Mysqld:
    """Keys are variables, spelled with underscores: `mysqld.sync_binlog`.

    `client` is a client's argv logged in as root; `option_file` the owned file; `variables`
    what the server reports about them (`describe`); `stock` its defaults (`observe`, before any
    setting was made).
    """

    name: ClassVar[str] = "mysqld"
    owned: ClassVar[bool] = True
    client: tuple[str, ...]
    option_file: Path
    flavour: str
    version: tuple[int, ...]
    variables: Mapping[str, Variable] = field(default_factory=dict)
    stock: Settings = field(default_factory=dict)

    def observe(self) -> Probe[Settings]:
        """Return the probe for all global variables, and for the keys that the file sets."""
        return observe(self.client, self.option_file)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes, each with the writing of the entire file as its action.

        A change is ONLINE where the variable is dynamic and the server answers (see `online`),
        else RESTART.  A value
        that the server rounded to its own unit counts as reached.  Raise `SpecError` for
        settings this server does not know or take.
        """
        problems = refusals(self.flavour, self.variables, want)
        if problems:
            raise SpecError("; ".join(problems))
        action = launch_file.install(
            self.option_file, option_file(want, self.flavour, self.version)
        )
        seen = {**self.stock, **now}
        held = [key for key in now.get(OWNED, "").split(",") if key]
        aims = {key: want.get(key, self.stock.get(key, "")) for key in {*want, *held}}
        aims |= self._bounds(aims)
        steps = {key: one.step for key, one in self.variables.items()}
        moved = [
            key for key in sorted(aims) if not granted(key, seen, aims[key], steps.get(key, 1))
        ]
        dynamic = {key for key in moved if key in self.variables and self.variables[key].dynamic}
        live = {
            key for key in dynamic if _ANSWERED in now and not needs_restart(key, seen, aims[key])
        }
        return [
            self._change(key, seen.get(key, ""), aims[key], action, online=key in live)
            for key in moved
        ]

    def _bounds(self, aims: Settings) -> dict[str, str]:
        """Return the first values of bounds that the server may have moved with a variable.

        Those that it would move at a start, too, are left out.
        """
        found: dict[str, str] = {}
        for key, bound in COMPANIONS.items():
            first = self.stock.get(bound, "")
            if key in aims and first and bound not in aims:
                low, high = (aims[key], first) if key in UPPER else (first, aims[key])
                with suppress(ValueError):  # what is no number, the server refuses
                    if float(normalise(low)) <= float(normalise(high)):
                        found[bound] = first
        return found

    def online(self, changes: Sequence[Change]) -> Sequence[Action]:
        """Return the `SET GLOBAL` of the online changes, for when no restart is due."""
        moved = [change for change in changes if change.cost is Cost.ONLINE]
        text = "".join(f"SET GLOBAL {assignment(each.key, each.after)};\n" for each in moved)
        return [Action(self.client, text.encode())] if text else []

    def _change(self, key: str, before: str, aim: str, action: Action, *, online: bool) -> Change:
        cost = Cost.ONLINE if online else Cost.RESTART
        return Change(key, before, normalise(aim), action, cost)


def option_file(want: Settings, flavour: str, version: tuple[int, ...]) -> str:
    """Return the text of the option file that makes a server have exactly these settings."""
    lines = [switch(key, value) or _line(key, value) for key, value in sorted(want.items())]
    logs = "log_bin" in want and normalise(want["log_bin"]) != "0"
    if logs and "server_id" not in want:
        lines += quirks(flavour, version).replication.options
    return _HEADER + "".join(f"{line}\n" for line in lines)


def observe(client: tuple[str, ...], option_file: Path) -> Probe[Settings]:
    """Return the probe for a server's global variables, normalised.

    Of an instance without settings, the answer is its defaults.
    """
    return Probe(launch_file.file_and_query(option_file, client, _QUESTION), parse)


def parse(raw: bytes) -> Settings:
    """Return the variables, or the file's own settings when the server did not answer."""
    text = raw.decode(errors="surrogateescape")
    lines = text.split("\n")
    rows = [line.split("\t") for line in lines if "\t" in line]
    shown = {row[0]: normalise(row[1]) for row in rows}
    for old, new in RENAMED.items():
        if old in shown:
            shown.setdefault(new, shown.pop(old))
    file = _file([line for line in lines if "\t" not in line])
    return {**file, **shown, **({OWNED: ",".join(sorted(file))} if file else {})}


def _file(lines: Sequence[str]) -> dict[str, str]:
    written = {key.strip(): value.strip() for key, value in launch_file.pairs(lines).items()}
    held = {key: normalise(_bare(value)) for key, value in written.items() if "-" not in key}
    for line, value in (("skip_log_bin", "0"), ("log_bin", "1")):
        if line in lines:
            held["log_bin"] = value
    return held


def _line(key: str, value: str) -> str:
    """Return an option file's line."""
    plain = normalise(value)
    number = plain if plain.isdigit() and not value.isalpha() else value
    return f"{key}={number if _PLAIN.fullmatch(number) else quoted(f'mysqld.{key}', number)}"


def _bare(value: str) -> str:
    if not value.startswith('"'):
        return value
    return value[1:-1].replace('\\"', '"').replace("\\\\", "\\")


def assignment(key: str, value: str) -> str:
    """Return what follows SET GLOBAL."""
    number = re.fullmatch(r"-?\d+(\.\d+)?", value)
    text = value.replace("\\", "\\\\").replace("'", "''")
    return f"{key} = {value}" if number else f"{key} = '{text}'"
