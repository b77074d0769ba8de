"""Files outside a copied data directory that the server's data dictionary refers to."""

from pathlib import Path

from mydyno.host import Host
from mydyno.model import RefusedError
from mydyno.server import client

# MySQL 8; MySQL 8; MySQL 5.6 and 5.7, MariaDB to 10.5; MariaDB from 10.6
_PLACES = (
    ("FILES", "FILE_NAME"),
    ("INNODB_DATAFILES", "PATH"),
    ("INNODB_SYS_DATAFILES", "PATH"),
    ("INNODB_SYS_TABLESPACES", "FILENAME"),
)
_COLUMNS = (
    "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS "
    "WHERE TABLE_SCHEMA = 'information_schema'"
)
_SHOWN = 5
_PATIENCE_S = 600.0  # a dictionary of millions of tables


def refuse(host: Host, argv: tuple[str, ...], data: Path, original: Path) -> None:
    """Raise `RefusedError` naming the files outside `data` that its running server would write to.

    `argv` is the client.
    """
    if found := _outside(host, argv, data):
        more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        shown = ", ".join(found[:_SHOWN]) + more
        raise RefusedError(
            f"stack.data: {original}: has files outside of it: {shown}; a copy would write into "
            "them; move them into the data directory first, or fill the data set by a workload"
        )


def _outside(host: Host, argv: tuple[str, ...], data: Path) -> list[str]:
    known = {(row[0].upper(), row[1].upper()) for row in _rows(host, argv, _COLUMNS)}
    paths = {
        row[0]
        for table, column in _PLACES
        if (table, column) in known
        for row in _rows(host, argv, f"SELECT {column} FROM information_schema.{table}")  # noqa: S608 - our own names
        if row[0] not in {"", "NULL"}
    }
    return sorted(p for p in paths if not _inside(data / p, data))


def _inside(path: Path, data: Path) -> bool:
    """Return whether a path, a relative one from `data`, stays in it."""
    return ".." not in path.parts and path.is_relative_to(data)


def _rows(host: Host, argv: tuple[str, ...], sql: str) -> list[tuple[str, ...]]:
    return client.query(host, argv, sql, _PATIENCE_S)
