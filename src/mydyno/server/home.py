"""An instance's home: root's files, which its user may read, and the folders of that user."""

import secrets
from contextlib import suppress
from pathlib import Path

from mydyno.host import Host
from mydyno.host.trusted import distrust, identity, make, remove
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.model import Action, JournalError, RefusedError, SpecError
from mydyno.server import accounts, place
from mydyno.server.build import Build
from mydyno.server.identity import Identity, refuse_unreachable
from mydyno.server.place import LONGEST_SOCKET, Place

SOCKETS = "socket folder"
_SHORT = Path("/tmp")  # noqa: S108 - a new folder there, with a name that nobody can guess
_REMOVAL_S = 60.0


def furnish(
    host: Host, build: Build, places: tuple[Path, Path], user: Identity, records: Records
) -> Place:
    """Make what is missing in a home; what is there is kept, so that a resumed run finds it again.

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
    _keep_or_install(host, where.load, "600", _credentials(accounts.LOAD_USER, None))
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
