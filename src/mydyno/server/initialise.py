"""How an empty data folder is filled, by flavour and version."""

from collections.abc import Sequence
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.server.build import Build
from mydyno.server.identity import Identity
from mydyno.server.place import Place

_INSTALLERS = ("mariadb-install-db", "mysql_install_db")
_OLD_TABLES = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
_TIMEOUT_S = 300.0


def initialise(host: Host, build: Build, place: Place, identity: Identity) -> None:
    """Fill the data folder with the server's own tables, root still without a password.

    The settings in the owned option file apply, so that page size and the like are right from
    the first byte.  Raise `HostError` with the tool's last words.
    """
    if build.mariadb:
        action = _mariadb(host, build, place)
    elif build.initialises_itself:
        action = Action((*_server(build, place), "--initialize-insecure"))
    else:
        action = _bootstrap(host, build, place, identity)
    done = host.run(Action((*identity.drop(), *action.argv), action.stdin), timeout_s=_TIMEOUT_S)
    if done.returncode:
        words = (done.stderr or done.stdout).decode(errors="replace").strip()[-1200:]
        raise HostError(
            f"{place.data}: {build.text}: initialising the data directory failed: {words}"
        )


def _server(build: Build, place: Place) -> tuple[str, str]:
    return str(build.mysqld), f"--defaults-file={place.options}"


def _mariadb(host: Host, build: Build, place: Place) -> Action:
    """Return MariaDB's own script, root by password rather than by the system's user."""
    installer = _one(host, [build.basedir / part for part in ("bin", "scripts")], _INSTALLERS)
    return Action(
        (
            str(installer),
            f"--defaults-file={place.options}",
            f"--basedir={build.basedir}",
            f"--datadir={place.data}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--force",  # a host that cannot look up its own name has a server all the same
        )
    )


def _bootstrap(host: Host, build: Build, place: Place, identity: Identity) -> Action:
    """Return what MySQL 5.6's Perl script does, without Perl and without writing a my.cnf.

    Lines that would make accounts for the machine's own name are left out, as the script's
    ``--cross-bootstrap`` does.
    """
    host.run(Action((*identity.drop(), "mkdir", "-m", "700", str(place.data / "mysql")))).check()
    folders = [build.basedir / "share", build.basedir / "share" / "mysql"]
    sql = b"use mysql;\n"
    for name in _OLD_TABLES:
        text = host.run(Action(("cat", str(_one(host, folders, (name,)))))).check().stdout
        sql += b"".join(
            line for line in text.splitlines(keepends=True) if b"@current_hostname" not in line
        )
    tuning = ("--max_allowed_packet=8M", "--net_buffer_length=16K", "--log-warnings=0")
    engine = "--default-storage-engine=MyISAM"
    return Action((*_server(build, place), "--bootstrap", engine, *tuning), sql)


def _one(host: Host, folders: Sequence[Path], names: Sequence[str]) -> Path:
    wanted = [str(folder / name) for folder in folders for name in names]
    found = host.run(Action(("find", *wanted, "-maxdepth", "0"))).stdout.decode().splitlines()
    if not found:
        raise HostError(
            f"none of {', '.join(wanted)} on {host.name}: incomplete server installation; install "
            "all its files"
        )
    return Path(found[0])
