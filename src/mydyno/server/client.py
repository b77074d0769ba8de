"""Asking a private instance: the client's command, and its reply as rows."""

import re
from collections.abc import Iterator
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.server.build import Build

_ESCAPES = {"n": "\n", "t": "\t", "0": "\0", "\\": "\\"}
_ESCAPE = re.compile(r"\\(.)")


def command(build: Build, *connection: str) -> tuple[str, ...]:
    """Return the client's arguments; SQL goes in by stdin, tab-separated rows come out.

    The environment is empty and the home folder does not exist, so that no login path, host or
    password of the user's can reach a private instance.
    """
    clean = ("env", "-i", "HOME=/nonexistent", "LC_ALL=C.UTF-8")
    return (*clean, str(build.client), *connection, "--batch", "--skip-column-names")


def with_options(build: Build, options: Path) -> tuple[str, ...]:
    """Return the client's arguments to log in by an option file."""
    return command(build, f"--defaults-file={options}")


def without_password(build: Build, socket: Path) -> tuple[str, ...]:
    """Return the client's arguments for root before it has a password."""
    return command(build, "--no-defaults", "--user=root", f"--socket={socket}")


def rows(raw: bytes) -> list[tuple[str, ...]]:
    """Return the rows of a batch reply, its escapes undone; NULL stays the word ``NULL``."""
    return list(_rows(raw.decode(errors="surrogateescape")))


def query(host: Host, argv: tuple[str, ...], sql: str, timeout_s: float) -> list[tuple[str, ...]]:
    """Return the rows of a statement; raise `HostError` with the server's complaint."""
    done = host.run(Action(argv, sql.encode()), timeout_s=timeout_s)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()[-400:]
        raise HostError(f"{host.name}: the server refused a statement: {words}")
    return rows(done.stdout)


def _rows(text: str) -> Iterator[tuple[str, ...]]:
    for line in text.split("\n"):
        if line:
            yield tuple(_ESCAPE.sub(_unescape, cell) for cell in line.split("\t"))


def _unescape(found: "re.Match[str]") -> str:
    return _ESCAPES.get(found.group(1), found.group(0))
