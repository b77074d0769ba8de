"""The resource limits of a private server: set when it is launched, read from /proc/PID/limits."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.model import Change, Probe, Settings, SpecError, unknown_value
from mydyno.stack import launch_file
from mydyno.stack.known import normalise
from mydyno.stack.launch_file import OWNED, Server

ROWS = {
    "nofile": "Max open files",
    "nproc": "Max processes",
    "memlock": "Max locked memory",
}
_INHERITED = dict.fromkeys(ROWS, "inherited")
_VALUE = re.compile(r"\d+|unlimited")


@dataclass(frozen=True, slots=True)
class Limits:
    """Keys `nofile` (files), `nproc` (processes), `memlock` (bytes): soft and hard alike."""

    server: Server

    @property
    def name(self) -> str:
        """Return the layer's part of a key."""
        return "limits"

    @property
    def owned(self) -> bool:
        """Return that its file belongs to mydyno."""
        return True

    def observe(self) -> Probe[Settings]:
        """Return the probe for the process's soft limits."""
        return Probe(self.server.look("limits"), parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for an unknown limit or a value that is none."""
        wanted = {key: _value(key, value) for key, value in want.items()}
        lines = [f"{key}={value}" for key, value in sorted(wanted.items())]
        return launch_file.changes(now, wanted, _INHERITED, self.server.write(lines))


def parse(raw: bytes) -> Settings:
    """Return the soft limits of the running process, else those that its launch file asks for."""
    seen = launch_file.parse(raw)
    settings = {key: value for key, value in seen.own.items() if key in ROWS}
    held = ",".join(sorted(settings))
    for line in seen.files.get("limits", []):
        for key, title in ROWS.items():
            if line.startswith(title):
                settings[key] = line.removeprefix(title).split()[0]
    return {**settings, OWNED: held} if held else settings


def _value(key: str, value: str) -> str:
    if key not in ROWS:
        raise SpecError(unknown_value(key, ROWS, "setting", prefix="limits."))
    plain = normalise(value).lower()
    if not _VALUE.fullmatch(plain):
        raise SpecError(f"limits.{key} = {value!r}: an integer or unlimited")
    return plain
