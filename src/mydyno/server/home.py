"""An instance's home: folders for its user alone, passwords, empty option and launch files."""

import secrets
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, SpecError
from mydyno.server import accounts, place, record
from mydyno.server.build import Build
from mydyno.server.identity import Identity, refuse_unreachable
from mydyno.server.place import LONGEST_SOCKET, Place


def furnish(host: Host, build: Build, home: Path, data: Path, identity: Identity) -> Place:
    """Make what is missing in `home`; what is there is kept, so that a resumed run finds it again.

    Raise `SpecError` if `identity`, which the server will run as, cannot reach a path.
    """
    for folder in (home, home / "launch", home / "tmp"):
        host.run(Action(identity.install("-d", "-m", "700", str(folder)))).check()
    for path in (home, build.mysqld):
        refuse_unreachable(host, identity, path)
    where = Place(home, data, _run_folder(host, identity, home))
    _keep_or_install(host, where.admin, "600", _credentials("root", where.socket))
    _keep_or_install(host, where.load, "600", _credentials(accounts.LOAD_USER, None))
    _keep_or_install(host, where.owned, "644", "[mysqld]\n")
    if not _exists(host, where.log):
        host.run(Action(identity.install("-m", "640", "/dev/null", str(where.log)))).check()
    install(host, where.options, "644", place.options(build, where))
    return where


def _run_folder(host: Host, identity: Identity, home: Path) -> Path:
    """Return the home itself, or a fresh short folder where its socket's path would not fit."""
    if len(str(home / "mysqld.sock").encode()) <= LONGEST_SOCKET:
        return home
    before = record.read(host, home)
    if before and before.run and _exists(host, Path(before.run)):
        return Path(before.run)
    folder = Action(("env", "-u", "TMPDIR", "mktemp", "-d", "--tmpdir", "mydyno.XXXXXX"))
    made = host.run(folder).check().stdout.decode().strip()
    host.run(Action(identity.install("-d", "-m", "700", made))).check()
    record.write(host, home, record.Record(str(home / "my.cnf"), made))
    return Path(made)


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
