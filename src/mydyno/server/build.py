"""Which server program this is: its flavour, version and places, read from `--version`."""

import re
from dataclasses import dataclass
from pathlib import Path

from mydyno.model import SpecError

_VERSION = re.compile(r"\bVer (?:[\d.]+ Distrib )?(\d+)\.(\d+)(?:\.(\d+))?")
_PRE_INSTALL_DB = (5, 7, 6)  # the first MySQL that initialises itself


@dataclass(frozen=True, slots=True)
class Build:
    """One server program; `flavour` is mysql, mariadb or percona, `text` its own words.

    `client` is a command-line client that runs on this host, not always the server's own.
    """

    flavour: str
    version: tuple[int, int, int]
    text: str
    mysqld: Path
    basedir: Path
    client: Path

    @property
    def mariadb(self) -> bool:
        """Return whether it is a MariaDB, whose options and tools differ most."""
        return self.flavour == "mariadb"

    @property
    def initialises_itself(self) -> bool:
        """Return whether `mysqld --initialize-insecure` exists (MySQL 5.7.6 and later)."""
        return not self.mariadb and self.version >= _PRE_INSTALL_DB


def parse(raw: bytes) -> tuple[str, tuple[int, int, int], str]:
    """Return flavour, version and text of a server's `--version` line.

    Raise `SpecError` when it names no version, for then it is no server of this family.
    """
    text = raw.decode(errors="replace").strip()
    found = _VERSION.search(text)
    if not found:
        raise SpecError(f"not a MySQL, MariaDB or Percona server: --version prints {text[:200]!r}")
    major, minor, patch = (int(part or 0) for part in found.groups())
    return flavour(text), (major, minor, patch), text


def flavour(text: str) -> str:
    """Return mariadb, percona or mysql by the words of a version string and its comment."""
    low = text.lower()
    named = [name for name in ("mariadb", "percona") if name in low]
    return named[0] if named else "mysql"
