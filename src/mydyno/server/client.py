"""Accounts of a private server, and the client that uses them."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.server.place import Build

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
    lines = filter(None, raw.decode(errors="surrogateescape").split("\n"))
    return [tuple(_ESCAPE.sub(_unescape, cell) for cell in line.split("\t")) for line in lines]


def query(host: Host, argv: tuple[str, ...], sql: str, timeout_s: float) -> list[tuple[str, ...]]:
    """Return the rows of a statement; raise `HostError` with the server's complaint."""
    done = host.run(Action(argv, sql.encode()), timeout_s=timeout_s)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()[-400:]
        raise HostError(f"{host.name}: the server refused a statement: {words}")
    return rows(done.stdout)


def _unescape(found: "re.Match[str]") -> str:
    return _ESCAPES.get(found.group(1), found.group(0))


LOAD_USER = "mydyno"
DATABASE = "sbtest"
_NATIVE = "mysql_native_password"
NATIVE_PLUGIN = (
    "SELECT plugin_name FROM information_schema.plugins "
    "WHERE plugin_name = 'mysql_native_password' AND plugin_status = 'ACTIVE'"
)
USERS = "SELECT user, host FROM mysql.user"
_ROOT = "'root'@'localhost'"
# from anywhere: where the server listens is settled for each trial, and who can get there
_LOAD = f"'{LOAD_USER}'@'%'"
_INTERNAL = ("mariadb.sys", "mysql.infoschema", "mysql.session", "mysql.sys")


def statements(
    build: Build,
    users: Iterable[Sequence[str]],
    *,
    native: bool,
    root_password: str,
    load_password: str,
    adopted: bool = False,
) -> str:
    """Return the SQL that gives a server its root and the load's account, a password each.

    Of other accounts the internal ones stay; all do in `adopted` data, since views and routines
    belong to them, and there the load may use all of it.  The load's account uses
    `mysql_native_password` where the server still has it, because every client library knows
    that; else the server's default.  Passwords must be plain letters, digits and signs without
    quotes.
    """
    load = create_user(build, _LOAD, load_password, native=native)
    if adopted:
        lines = [*_root_recreated(users, root_password), load, f"GRANT ALL ON *.* TO {_LOAD};"]
    else:
        lines = [f"DROP USER '{user}'@'{host}';" for user, host in users if not _keep(user, host)]
        lines += [f"CREATE DATABASE {DATABASE};", load, f"GRANT ALL ON {DATABASE}.* TO {_LOAD};"]
        lines += [build.quirks.root_password.format(user=_ROOT, password=root_password)]
    return "\n".join(["SET sql_log_bin = 0;", *lines, "FLUSH PRIVILEGES;"]) + "\n"


def _root_recreated(users: Iterable[Sequence[str]], password: str) -> list[str]:
    """Return the SQL that recreates root on a server started without its grant tables.

    The first statement lets it know accounts again.
    """
    there = {f"'{user}'@'{host}'" for user, host in users}
    return [
        "FLUSH PRIVILEGES;",
        *(f"DROP USER {who};" for who in (_ROOT, _LOAD) if who in there),
        f"CREATE DATABASE IF NOT EXISTS {DATABASE};",
        f"CREATE USER {_ROOT} IDENTIFIED BY '{password}';",
        f"GRANT ALL ON *.* TO {_ROOT} WITH GRANT OPTION;",
    ]


def create_user(build: Build, who: str, password: str, *, native: bool) -> str:
    """Return the SQL for an account; `native`: the server still has `mysql_native_password`."""
    plugin = f"WITH {_NATIVE} " if native and build.quirks.names_plugin else ""
    return f"CREATE USER {who} IDENTIFIED {plugin}BY '{password}';"


def _keep(user: str, host: str) -> bool:
    return (user, host) == ("root", "localhost") or user in _INTERNAL
