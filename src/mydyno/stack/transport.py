"""How a load reaches a private server: over its socket or over loopback TCP."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mydyno.model import Change, Probe, Settings, SpecError
from mydyno.stack import running
from mydyno.stack.running import OWNED

_DEFAULT = {"transport": "socket"}
_CHOICES = ("socket", "tcp")
_QUESTION = b"SHOW GLOBAL VARIABLES LIKE 'skip_networking';\n"


@dataclass(frozen=True, slots=True)
class Transport:
    """Key `net.transport`: tcp or socket; `client` asks the running server whether it listens.

    `own` is the launch file; socket is what a private instance does unasked.
    """

    own: Path
    client: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the layer's part of a key."""
        return "net"

    @property
    def owned(self) -> bool:
        """Return that its file belongs to mydyno."""
        return True

    def observe(self) -> Probe[Settings]:
        """Return the question for the launch file, and for the server where it answers."""
        return Probe(running.beside(self.own, self.client, _QUESTION), parse)

    def plan(self, now: Settings, want: Settings) -> Sequence[Change]:
        """Return the change; raise `SpecError` for another key or value."""
        for key in want.keys() - _DEFAULT.keys():
            raise SpecError(f"net.{key}: not a setting of a private instance; it has net.transport")
        transport = want.get("transport", "socket")
        if transport not in _CHOICES:
            raise SpecError(f"net.transport = {transport!r}: one of {', '.join(_CHOICES)}")
        text = "".join(f"{key}={value}\n" for key, value in want.items())
        return running.changes(now, want, _DEFAULT, running.install(self.own, text))


def parse(raw: bytes) -> Settings:
    """Return the transport: what the server says if it answered, else what the file asks for."""
    lines = raw.decode(errors="replace").splitlines()
    own = running.pairs(lines)
    asked = own.get("transport", "socket")
    closed = [line.split("\t")[1] for line in lines if line.startswith("skip_networking\t")]
    heard = {"ON": "socket", "OFF": "tcp"}.get(closed[0], asked) if closed else asked
    held = {OWNED: "transport"} if "transport" in own else {}
    return {"transport": heard, **held}
