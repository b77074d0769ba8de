"""The environment of a private server, apart from what the allocator needs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.model import Change, Probe, Settings, SpecError
from mydyno.stack import launch_file
from mydyno.stack.launch_file import OWNED, Server

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN = {
    "LD_PRELOAD": "set alloc.library",
    "GLIBC_TUNABLES": "set alloc.tunables",
    "MALLOC_CONF": "set alloc.tunables",
    "HOME": "mydyno sets it",
    "LC_ALL": "mydyno sets it",
    "PATH": "mydyno sets it",
}


@dataclass(frozen=True, slots=True)
class Env:
    """Keys are the names of environment variables: `env.TZ`."""

    server: Server

    @property
    def name(self) -> str:
        """Return the layer's part of a key."""
        return "env"

    @property
    def owned(self) -> bool:
        """Return that its file belongs to mydyno."""
        return True

    def observe(self) -> Probe[Settings]:
        """Return the probe for the variables that mydyno set, as the process has them."""
        return Probe(self.server.look("environ"), parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the changes; raise `SpecError` for a name or value that cannot be set."""
        for name, value in want.items():
            _refuse(name, value)
        lines = [f"{name}={value}" for name, value in sorted(want.items())]
        return launch_file.changes(now, want, {}, self.server.write(lines))


def parse(raw: bytes) -> Settings:
    """Return the own file's variables, with the running process's values where it runs."""
    seen = launch_file.parse(raw)
    truth = launch_file.pairs(seen.files.get("environ", [])) if seen.running else seen.own
    settings = {name: truth[name] for name in seen.own if name in truth}
    return {**settings, OWNED: ",".join(sorted(seen.own))} if seen.own else settings


def _refuse(name: str, value: str) -> None:
    if name in _TAKEN:
        raise SpecError(f"env.{name}: not here: {_TAKEN[name]}")
    if not _NAME.fullmatch(name):
        raise SpecError(f"env.{name}: not a variable's name: letters, digits and _ only")
    if "\n" in value or "\0" in value:
        raise SpecError(f"env.{name}: one line only")
