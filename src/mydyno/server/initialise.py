"""How an empty data folder is filled, by flavour and version."""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from mydyno.host import Host
from mydyno.host.files import distrust, identity, make, remove
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.model import Action, HostError, JournalError, RefusedError, SpecError
from mydyno.server import client, place
from mydyno.server.place import LONGEST_SOCKET, Build, Identity, Place, refuse_unreachable

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


SOCKETS = "socket folder"
_SHORT = Path("/tmp")  # noqa: S108 - a new folder there, with a name that nobody can guess
_REMOVAL_S = 60.0


def furnish(
    host: Host, build: Build, places: tuple[Path, Path], user: Identity, records: Records
) -> Place:
    """Make what is missing in a home; what exists stays, so that a resumed run finds it again.

    `places` are the home and the data.  Raise `SpecError` if the user that the server will run as
    cannot reach a path, `RefusedError` where somebody else could change what is there.
    """
    home, data = places
    # what is made in a folder with the setgid bit has its group: the server may read it
    mode = "2710" if user.name else "700"
    for folder in (home, home / "launch"):
        _folder(host, folder, mode, user.group)
    where = Place(home, data, _run_folder(host, user, home, records))
    for folder in (where.tmp, where.run):
        _folder(host, folder, "700", user.owner)
    for path in (home, build.mysqld):
        refuse_unreachable(host, user, path)
    _keep_or_install(host, where.admin, "600", _credentials("root", where.socket))
    _keep_or_install(host, where.load, "600", _credentials(client.LOAD_USER, None))
    _keep_or_install(host, where.owned, "640", "[mysqld]\n")
    _keep_or_install(host, where.log, "600", "")
    install(host, where.options, "640", place.options(build, where))
    return where


def _folder(host: Host, folder: Path, mode: str, owner: str) -> None:
    """Make a folder, or see that the one that is there is root's or the server's own."""
    if not _exists(host, folder):
        make(host, folder, mode, owner=owner)
    elif problem := distrust(host, folder.parent, shared=True):
        raise RefusedError(f"{folder}: cannot be used safely: {problem}; choose another -o")


def _run_folder(host: Host, user: Identity, home: Path, records: Records) -> Path:
    """Return a folder in the home, or in a new short one where its socket's path would not fit."""
    inside = home / "run"
    if len(str(inside / "mysqld.sock").encode()) <= LONGEST_SOCKET:
        return inside
    for made in things(records.entries(), SOCKETS):
        if made.facts.get("home") == str(home):
            return Path(made.place) / "run"
    short = _SHORT / f"mydyno-{secrets.token_hex(8)}"
    records.add(Made(SOCKETS, str(short)))
    make(host, short, "711" if user.name else "700")
    records.add(Made(SOCKETS, str(short), {**identity(host, short), "home": str(home)}))
    return short / "run"


def remove_sockets(host: Host, records: Records) -> None:
    """Remove the short folders that were made for sockets."""
    for made in things(records.entries(), SOCKETS):
        facts = {k: v for k, v in made.facts.items() if k != "home"}
        remove(host, Path(made.place), facts, timeout_s=_REMOVAL_S)
        with suppress(JournalError):  # it is gone, recorded or not
            records.add(Removed(SOCKETS, made.place))


def _credentials(user: str, socket: Path | None) -> str:
    return place.client_options(user, f"My1-{secrets.token_hex(16)}", socket)


def password_of(host: Host, path: Path) -> str:
    """Return the password in a client option file of ours; raise `SpecError` where none is."""
    password = place.password_in(host.run(Action(("cat", str(path)))).check().stdout.decode())
    if not password:
        raise SpecError(f"{path}: no password in it: remove the file and begin again")
    return password


def _keep_or_install(host: Host, path: Path, mode: str, text: str) -> None:
    if not _exists(host, path):
        install(host, path, mode, text)


def _exists(host: Host, path: Path) -> bool:
    return host.run(Action(("test", "-e", str(path)))).returncode == 0


def install(host: Host, path: Path, mode: str, text: str) -> None:
    """Write a file of ours, with its mode."""
    host.run(Action(("install", "-m", mode, "/dev/stdin", str(path)), text.encode())).check()
