"""What an instance has before its first start: its home, its data folder, its certificates."""

import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from mydyno.host import Host
from mydyno.host.files import distrust, identity, make, remove
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.model import Action, HostError, JournalError, RefusedError, SpecError
from mydyno.server import client, place
from mydyno.server.place import (
    CA,
    CERTIFICATE,
    KEY,
    LONGEST_SOCKET,
    SERVER_CERTIFICATE,
    SERVER_KEY,
    Build,
    Identity,
    Place,
    refuse_unreachable,
)

_TIMEOUT_S = 300.0


def initialise(host: Host, build: Build, place: Place, identity: Identity) -> None:
    """Fill the data folder with the server's own tables, root still without a password.

    The settings in the owned option file apply, so that page size and the like are right from
    the first byte.  Raise `HostError` with the tool's last words.
    """
    how = build.quirks.initialisation
    folders: tuple[str, ...] = ()
    program = build.mysqld
    if how.programs:
        program = _one(host, [build.basedir / part for part in ("bin", "scripts")], how.programs)
        folders = (f"--basedir={build.basedir}", f"--datadir={place.data}")
    argv = (str(program), f"--defaults-file={place.options}", *folders, *how.options)
    sql = _system_tables(host, build, place, identity)
    done = host.run(Action((*identity.drop(), *argv), sql), timeout_s=_TIMEOUT_S)
    if done.returncode:
        lines = (done.stderr or done.stdout).decode(errors="replace").strip()[-1200:].splitlines()
        words = " | ".join(lines)
        raise HostError(
            f"{place.data}: {build.text}: initialising the data directory failed: {words}"
        )


def _system_tables(host: Host, build: Build, place: Place, identity: Identity) -> bytes:
    """Return the SQL for a server that makes its system tables from files, and their folder.

    Lines that would make accounts for the machine's own name are left out, as the option
    ``--cross-bootstrap`` of MySQL 5.6's own script does.
    """
    names = build.quirks.initialisation.sql
    if not names:
        return b""
    host.run(Action((*identity.drop(), "mkdir", "-m", "700", str(place.data / "mysql")))).check()
    folders = [build.basedir / "share", build.basedir / "share" / "mysql"]
    lines = [b"use mysql;\n"]
    for name in names:
        text = host.run(Action(("cat", str(_one(host, folders, (name,)))))).check().stdout
        lines += text.splitlines(keepends=True)
    return b"".join(line for line in lines if b"@current_hostname" not in line)


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


def ensure_certificate(host: Host, build: Build, place: Place) -> Sequence[tuple[str, str]]:
    """Return the options for a self-signed certificate in the home, if this build needs one.

    MariaDB 11.4 makes an RSA key of 4096 bits in memory at every start, which takes from 3 to
    15 seconds of a core.  One of the same kind, kept, leaves TLS as it is by default.  Without
    `openssl` on the host the server goes on making its own.
    """
    if not build.quirks.tls.slow_key:
        return ()
    certificate, key = str(place.home / "tls-cert.pem"), str(place.home / "tls-key.pem")
    options = (("ssl_cert", certificate), ("ssl_key", key))
    if host.run(Action(("test", "-s", certificate))).returncode == 0:
        return options
    argv = ("openssl", "req", "-x509", "-newkey", "rsa:4096", "-nodes", "-days", "3650")
    files = ("-keyout", key, "-out", certificate, "-subj", "/CN=MariaDB Server")
    try:
        done = host.run(Action((*argv, *files)), timeout_s=120.0)
    except HostError:
        return ()
    # openssl keeps a key to its owner; the server's user reads it by its group
    readable = ("chmod", "640", key, certificate)
    failed = done.returncode or host.run(Action(readable)).returncode
    return () if failed else options


_KIND = "rsa:2048"  # as MySQL 8 makes its own
_DAYS = "3650"
_CA_KEY = "ca-key.pem"
_EXTENSIONS = "extensions.txt"
_OPENSSL_S = 60.0
# An extension makes the certificates of version 3, the only one that wolfSSL takes.
_VERSION_3 = "basicConstraints = CA:FALSE\n"


def ensure_authority(host: Host, folder: Path, identity: Identity) -> None:
    """Fill `folder` with an authority, and certificates and keys signed by it, where missing.

    They are root's; the server's user can read its own key, and neither the client's nor the
    authority's.  Raises `HostError` where `openssl` is missing or fails.
    """
    if host.run(Action(("test", "-s", str(folder / CERTIFICATE)))).returncode:
        _make(host, folder, identity)
    # openssl keeps a key to its owner; the server's user reads it by its group
    of_server = (str(folder / name) for name in (CA, SERVER_CERTIFICATE, SERVER_KEY))
    host.run(Action(("chmod", "640", *of_server))).check()


def _make(host: Host, folder: Path, identity: Identity) -> None:
    host.run(Action(("mkdir", "-p", "-m", "2710" if identity.name else "700", str(folder)))).check()
    install(host, folder / _EXTENSIONS, "640", _VERSION_3)
    for action in _made(folder):
        try:
            done = host.run(Action(action), timeout_s=_OPENSSL_S)
        except HostError as error:
            raise HostError(f"net.tls: no certificate could be made: {error}") from error
        done.check()


def _made(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield the commands, the client's certificate last: it marks the folder as complete."""
    ca, key = str(folder / CA), str(folder / _CA_KEY)
    request = ("openssl", "req", "-newkey", _KIND, "-nodes")
    yield (*request, "-x509", "-days", _DAYS, "-keyout", key, "-out", ca, "-subj", "/CN=mydyno CA")
    signing = ("openssl", "x509", "-req", "-days", _DAYS, "-CA", ca, "-CAkey", key)
    signed = (*signing, "-extfile", str(folder / _EXTENSIONS))
    pairs = ((SERVER_CERTIFICATE, SERVER_KEY, "server"), (CERTIFICATE, KEY, "client"))
    for serial, (certificate, own_key, name) in enumerate(pairs, start=1):
        asked = str(folder / f"{name}.csr")
        keys = ("-keyout", str(folder / own_key), "-out", asked)
        yield (*request, *keys, "-subj", f"/CN=mydyno {name}")
        made = ("-in", asked, "-out", str(folder / certificate), "-set_serial", str(serial))
        yield (*signed, *made)
