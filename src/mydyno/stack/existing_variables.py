"""The variables of a running server that is not ours: set while it runs, and restored."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mydyno.model import Action, Change, Probe, Settings, SpecError, unknown_value
from mydyno.stack.known import granted, normalise, same
from mydyno.stack.mysqld import assignment
from mydyno.stack.protocol import IDENTITY

_CLIENT = 'exec "$(command -v mariadb || command -v mysql)" "$@"'
_QUESTION = b"SELECT '@', CONCAT_WS(' ', @@hostname, @@datadir, @@port);\nSHOW GLOBAL VARIABLES;\n"


def client(options: str) -> tuple[str, ...]:
    """Return a client's argv, which logs in by an option file of the host."""
    return (
        *("sh", "-c", _CLIENT, "client", f"--defaults-file={options}"),
        *("--batch", "--skip-column-names"),
    )


@dataclass(frozen=True, slots=True)
class ExistingVariables:
    """Bare keys are variables, of which only `keys` are watched; `at` is the client's option file.

    It is not owned: what a treatment does not name has its first value again.
    """

    keys: tuple[str, ...]
    at: str
    name: ClassVar[str] = "mysqld"
    owned: ClassVar[bool] = False

    def observe(self) -> Probe[Settings]:
        """Return the probe of these variables, and of which server it is."""
        return Probe(Action(client(self.at), _QUESTION), self._parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return a `SET GLOBAL` for each that differs; raise `SpecError` for an unknown one."""
        for key in want:
            if key not in now:
                raise SpecError(unknown_value(key, now, "variable", prefix="mysqld.", listed=False))
        return [
            self._change(key, now[key], value)
            for key, value in sorted(want.items())
            if not granted(key, now, value)
        ]

    def undo(self, now: Settings, first: Settings) -> Sequence[Change]:
        """Return what brings each to its first value."""
        return [
            self._change(key, now[key], value)
            for key, value in sorted(first.items())
            if key != IDENTITY and key in now and not same(key, now[key], value)
        ]

    def _change(self, key: str, before: str, after: str) -> Change:
        plain = normalise(after)
        text = f"SET GLOBAL {assignment(key, plain)};\n"
        return Change(key, before, plain, Action(client(self.at), text.encode()))

    def _parse(self, raw: bytes) -> Settings:
        rows = [line.split("\t", 1) for line in raw.decode(errors="replace").splitlines()]
        shown = {row[0]: row[1] for row in rows if len(row) == len(("name", "value"))}
        found = {key: normalise(shown[key]) for key in self.keys if key in shown}
        return {**found, IDENTITY: shown.get("@", "")}
