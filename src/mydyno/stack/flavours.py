"""Server flavours: one table of how they differ, by flavour and by version.

Who needs to know asks for a quirk; no other module compares a flavour or a version.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import eq, ge, gt, le, lt
from typing import Any

from mydyno.model import SpecError
from mydyno.model.plugins import with_plugins

Version = tuple[int, ...]
_OPERATORS = {">=": ge, "<=": le, "<": lt, ">": gt, "==": eq}


@dataclass(frozen=True, slots=True)
class Initialisation:
    """How an empty data folder is filled: by the first of `programs`, without any by the server.

    `options` are those that this program takes besides its folders; the SQL files come by stdin.
    """

    options: tuple[str, ...]
    programs: tuple[str, ...] = ()
    sql: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TlsQuirks:
    """What a server needs for TLS.

    `off` is the option that switches it off.  With `wolfssl` the ciphers of TLS 1.3 are named in
    `ssl_cipher`, as that library names them too.  `requires` is whether it can refuse sessions
    without TLS, `slow_key` whether each start makes a key of 4096 bits unless it is given one.
    `refusal` is why no TLS can be used, `no_1_3` why TLS 1.3 cannot.
    """

    off: tuple[str, str] = ("skip_ssl", "1")
    wolfssl: bool = False
    requires: bool = False
    slow_key: bool = False
    refusal: str = ""
    no_1_3: str = ""


@dataclass(frozen=True, slots=True)
class LookQuirks:
    """The statements that look at a server and differ; ``""`` where it has none.

    `limit` is an assignment that bounds a session's statements.  `origins` returns name, origin and
    file of each variable, `tablespaces` is the table that has their sizes.  `ranges`:
    variables_info has those of variables.
    """

    limit: str = ""
    origins: str = ""
    tablespaces: str = ""
    replica: str = "SHOW SLAVE STATUS"
    ranges: bool = False


@dataclass(frozen=True, slots=True)
class ReplicationQuirks:
    """What replication needs: lines of an option file for a binary log, and statements.

    They ask for the log's position, and have a replica follow from it.
    """

    options: tuple[str, ...] = ()
    position: str = "SHOW MASTER STATUS"
    follow: str = (
        "CHANGE MASTER TO MASTER_HOST = '{host}', MASTER_PORT = {port}, MASTER_USER = '{user}', "
        "MASTER_PASSWORD = '{password}', MASTER_LOG_FILE = '{file}', MASTER_LOG_POS = {at}; "
        "START SLAVE"
    )


_REPLICATION = ReplicationQuirks()
_MARIADB_REPLICATION = ReplicationQuirks(
    follow=_REPLICATION.follow.replace("; START", ", MASTER_USE_GTID = no; START")
)
_MYSQL_REPLICATION_8_0 = ReplicationQuirks(  # its accounts need a key where nothing is encrypted
    follow=_REPLICATION.follow.replace("; START", ", GET_MASTER_PUBLIC_KEY = 1; START")
)
_MYSQL_REPLICATION_8_0_23 = ReplicationQuirks(
    follow=_MYSQL_REPLICATION_8_0.follow.replace("CHANGE MASTER", "CHANGE REPLICATION SOURCE")
    .replace("MASTER_", "SOURCE_")
    .replace("START SLAVE", "START REPLICA")
)
_SET_PASSWORD = "SET PASSWORD FOR {user} = PASSWORD('{password}');"  # noqa: S105 - a statement
_ALTER_USER = "ALTER USER {user} IDENTIFIED BY '{password}';"


@dataclass(frozen=True, slots=True)
class Quirks:
    """What is particular to one version of a flavour.

    `root_password` is the statement that gives root its first password.  With `names_plugin` an
    account has `mysql_native_password` only where that is named.  `options` are lines of a private
    instance's option file.  Ranges and kinds of variables are in SYSTEM_VARIABLES
    (`lists_variables`).  It `persists` variables where it knows SET PERSIST.
    With `tries` its program only reports what is wrong with its options, and ends.
    """

    initialisation: Initialisation
    tls: TlsQuirks = TlsQuirks()
    root_password: str = _SET_PASSWORD
    names_plugin: bool = False
    options: tuple[str, ...] = ()
    lists_variables: bool = False
    persists: bool = False
    tries: tuple[str, ...] = ("--verbose", "--help")
    look: LookQuirks = LookQuirks()
    replication: ReplicationQuirks = _REPLICATION


@dataclass(frozen=True, slots=True)
class Redo:
    """The probe's columns of the redo log: its LSN, that of the last checkpoint, bytes between."""

    lsn: str
    checkpoint: str
    age: str = ""


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual for a flavour's servers.

    They read the `groups` of option files, alone and with their series.  Debian's packages name the
    `unit` and read the folder `include`.  An idle connection costs `idle_bytes`.  `redo` are the
    columns of a sample that may hold the redo log.
    """

    groups: tuple[str, ...] = ("mysqld", "server")
    unit: str = "mysql.service"
    include: str = "/etc/mysql/mysql.conf.d"
    idle_bytes: float = 342 * 1024.0  # measured on 8.0.33 with performance_schema
    redo: tuple[Redo, ...] = ()


@dataclass(frozen=True, slots=True)
class Flavour:
    """A family of servers; `title` is its name in messages.

    `mark` is the word, in lower case, by which its ``--version`` line is recognised.  `quirks` are
    those of the `oldest` version that is supported, and `since` maps a version to the fields that
    differ from it on.  What is known of its `kin` holds for it too.
    """

    title: str
    mark: str
    programs: tuple[str, ...]
    clients: tuple[str, ...]
    oldest: Version
    quirks: Quirks
    since: Mapping[Version, Mapping[str, Any]] = field(default_factory=dict)
    kin: str = ""
    usual: Usual = Usual()

    def at(self, version: Version) -> Quirks:
        """Return the quirks of a version; of an unknown one, ``()``, those of the oldest."""
        found = self.quirks
        for first in sorted(self.since):
            if version >= first:
                found = replace(found, **self.since[first])
        return found


_INSTALLERS = ("mariadb-install-db", "mysql_install_db")
# a host that cannot look up its own name has a server all the same
_INSTALL = ("--skip-name-resolve", "--force")
# root by password rather than by the system's user
_INSTALL_10_3 = ("--auth-root-authentication-method=normal", "--skip-test-db", *_INSTALL)
_MARIADB_TLS = TlsQuirks(wolfssl=True)  # its own packages stand on wolfSSL
_MARIADB_TLS_10_5 = replace(_MARIADB_TLS, requires=True)

_MARIADB_LOOK = LookQuirks(
    limit="max_statement_time = 10",
    origins="SELECT LOWER(variable_name), LOWER(global_value_origin), NULL "
    "FROM information_schema.system_variables",
    tablespaces="innodb_sys_tablespaces",
    replica="SHOW ALL SLAVES STATUS",  # the other statement has one connection of several
)
_MARIADB_LOOK_10_5 = replace(
    _MARIADB_LOOK, origins=_MARIADB_LOOK.origins.replace("NULL", "global_value_path")
)
_MYSQL_LOOK = LookQuirks(limit="max_execution_time = 10000", tablespaces="innodb_sys_tablespaces")
_MYSQL_LOOK_8_0 = replace(
    _MYSQL_LOOK,
    origins="SELECT variable_name, LOWER(variable_source), variable_path "
    "FROM performance_schema.variables_info",
    tablespaces="innodb_tablespaces",
    ranges=True,
)

# The oldest versions are the first that load a list of pages into the buffer pool at their start.
MARIADB = Flavour(
    title="MariaDB",
    mark="mariadb",
    programs=("mariadbd", "mysqld"),
    clients=("mariadb", "mysql"),
    oldest=(10, 0),
    quirks=Quirks(
        initialisation=Initialisation(_INSTALL, _INSTALLERS),
        tls=_MARIADB_TLS,
        lists_variables=True,
        look=_MARIADB_LOOK,
        replication=_MARIADB_REPLICATION,
    ),
    usual=Usual(
        groups=("mysqld", "server", "mariadb", "mariadbd", "client-server", "galera"),
        unit="mariadb.service",
        include="/etc/mysql/mariadb.conf.d",
        idle_bytes=118 * 1024.0,  # measured on 10.11
        redo=(
            Redo(
                "status.innodb_lsn_current",
                "status.innodb_lsn_last_checkpoint",
                "status.innodb_checkpoint_age",
            ),
        ),
    ),
    since={
        (10, 3): {"initialisation": Initialisation(_INSTALL_10_3, _INSTALLERS)},
        (10, 5, 2): {"tls": _MARIADB_TLS_10_5, "look": _MARIADB_LOOK_10_5},
        (11, 3): {"tls": replace(_MARIADB_TLS_10_5, slow_key=True)},
    },
)

# What MySQL 5.6's Perl script does, without Perl and without writing a my.cnf.
_BOOTSTRAP = Initialisation(
    options=(
        "--bootstrap",
        "--default-storage-engine=MyISAM",
        "--max_allowed_packet=8M",
        "--net_buffer_length=16K",
        "--log-warnings=0",
    ),
    sql=("mysql_system_tables.sql", "mysql_system_tables_data.sql"),
)
_MYSQL_TLS = TlsQuirks(
    refusal="MySQL before 5.7.10 speaks TLS 1.1 at the most, which client libraries refuse"
)
_MYSQL_TLS_1_2 = TlsQuirks(no_1_3="MySQL speaks TLS 1.3 from 8.0.16 on")
MYSQL = Flavour(
    title="MySQL",
    mark="",
    programs=("mysqld",),
    clients=("mysql",),
    oldest=(5, 6),
    quirks=Quirks(
        initialisation=_BOOTSTRAP,
        tls=_MYSQL_TLS,
        replication=ReplicationQuirks(("server-id=1",)),  # the dash: not a wish
    ),
    since={
        (5, 6, 46): {"tls": _MYSQL_TLS_1_2},
        (5, 7, 6): {
            "initialisation": Initialisation(("--initialize-insecure",)),
            "root_password": _ALTER_USER,
            "tls": _MYSQL_TLS,
        },
        (5, 7, 8): {"tls": replace(_MYSQL_TLS, requires=True), "look": _MYSQL_LOOK},
        (5, 7, 10): {"tls": replace(_MYSQL_TLS_1_2, requires=True)},
        (8, 0): {
            "names_plugin": True,
            "persists": True,
            "look": _MYSQL_LOOK_8_0,
            "replication": _MYSQL_REPLICATION_8_0,
        },
        (8, 0, 11): {"options": ("mysqlx = 0",)},  # it listens for the X protocol unasked
        (8, 0, 16): {
            "tls": TlsQuirks(off=("tls_version", ""), requires=True),
            "tries": ("--validate-config",),
        },
        (8, 0, 22): {"look": replace(_MYSQL_LOOK_8_0, replica="SHOW REPLICA STATUS")},
        (8, 0, 23): {"replication": _MYSQL_REPLICATION_8_0_23},
        (8, 4): {
            "replication": replace(_MYSQL_REPLICATION_8_0_23, position="SHOW BINARY LOG STATUS")
        },
    },
    usual=Usual(
        redo=(
            Redo("status.innodb_redo_log_current_lsn", "status.innodb_redo_log_checkpoint_lsn"),
            Redo(
                "innodb.log_lsn_current",  # where switched on
                "innodb.log_lsn_last_checkpoint",
                "innodb.log_lsn_checkpoint_age",
            ),
        ),
    ),
)
_PERCONA = replace(
    MYSQL,
    title="Percona Server",
    mark="percona",
    kin="mysql",
)


@cache
def flavours() -> Mapping[str, Flavour]:
    """Return every flavour by its name in specs, ours first.

    Raises `SpecError` for a plug-in that cannot be used.
    """
    own = {"mariadb": MARIADB, "percona": _PERCONA, "mysql": MYSQL}
    return with_plugins("mydyno.flavours", Flavour, own)


def quirks(flavour: str, version: Version) -> Quirks:
    """Return what is particular to a server."""
    return flavours()[flavour].at(version)


def recognised(text: str) -> str:
    """Return the flavour that a server's version line or comment names; plug-ins go first."""
    named = [name for name, one in flavours().items() if one.mark and one.mark in text.lower()]
    return named[-1] if named else "mysql"


def known_as(flavour: str) -> tuple[str, ...]:
    """Return the names under which something is known of a flavour: its own, then its kin's."""
    one = flavours().get(flavour)
    return (flavour, one.kin) if one and one.kin else (flavour,)


def matches(condition: str, flavour: str, version: Sequence[int]) -> bool:
    """Return whether ``mariadb`` or ``mysql >= 8.0.30, < 9`` is true of a server.

    A Percona Server is a ``mysql`` too; ``percona`` means it alone.  Raises `SpecError`.
    """
    names = "|".join(map(re.escape, flavours()))
    bound = r"(>=|<=|<|>|==)\s*(\d+(?:\.\d+)*)"
    found = re.fullmatch(rf"({names})((?:\s*,?\s*{bound})*)", condition.strip())
    if not found:
        raise SpecError(
            f'{condition!r} is not a condition; write "mariadb" or "mysql >= 8.0.30, < 9"'
        )
    return found[1] in known_as(flavour) and all(
        _OPERATORS[sign](tuple(version[: text.count(".") + 1]), tuple(map(int, text.split("."))))
        for sign, text in re.findall(bound, found[2])
    )


def redo_columns() -> Sequence[Redo]:
    """Return the columns of the redo log that servers of any flavour have; a sample has some."""
    return tuple(dict.fromkeys(one for known in flavours().values() for one in known.usual.redo))
