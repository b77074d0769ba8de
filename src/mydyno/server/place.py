"""A server's build, its user, its files, and what its option files hold."""

import random
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host, is_root
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.model import Action, JournalError, SpecError, one_line, quoted
from mydyno.stack.flavours import Quirks, TlsQuirks, flavours, quirks, recognised

_VERSION = re.compile(r"\bVer (?:[\d.]+ Distrib )?(\d+)\.(\d+)(?:\.(\d+))?")


@dataclass(frozen=True, slots=True)
class Build:
    """One server program; `flavour` is a name of the table of flavours, `text` its own words.

    `client` is a command-line client that runs on this host, not always the server's own.  `tls` is
    the library that it is built with, ``""`` for an unknown one.
    """

    flavour: str
    version: tuple[int, int, int]
    text: str
    mysqld: Path
    basedir: Path
    client: Path
    tls: str = ""
    allocator: str = "glibc"

    @property
    def description(self) -> str:
        """Return what a campaign's reader needs to know of it."""
        tls = self.tls or "an unknown library"
        return f"{self.text}, flavour {self.flavour}, TLS by {tls}, allocator {self.allocator}"

    @property
    def quirks(self) -> Quirks:
        """Return what is particular to this version of its flavour."""
        return quirks(self.flavour, self.version)


def parse(raw: bytes) -> tuple[str, tuple[int, int, int], str]:
    """Return flavour, version and text of a server's `--version` line.

    Raise `SpecError` when it names no version, for then it is no server of this family, or one
    that is older than the oldest that is supported.
    """
    text = raw.decode(errors="replace").strip()
    found = _VERSION.search(text)
    if not found:
        raise SpecError(f"not a MySQL, MariaDB or Percona server: --version prints {text[:200]!r}")
    major, minor, patch = (int(part or 0) for part in found.groups())
    version, name = (major, minor, patch), recognised(text)
    known = flavours()[name]
    if version < known.oldest:
        oldest = ".".join(map(str, known.oldest))
        raise SpecError(
            f"{known.title} {major}.{minor}.{patch} is not supported; use {known.title} {oldest} "
            "or later"
        )
    return name, version, text


KIND = "user"
# What systemd hands out to services without a user of their own; no package and no person gets one.
_RANGE = range(61184, 65520)
_FEWER = ("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
_TAKEN = "getent passwd; getent group; stat -c 'x:x:%u' /proc/[0-9]* 2>/dev/null; :"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user to drop to; without a `name` the server runs as who we are."""

    name: str = ""
    uid: int = -1
    gid: int = -1

    def drop(self) -> tuple[str, ...]:
        """Return the arguments before a command that is to run as this user."""
        if not self.name:
            return ()
        user = ("--reuid", str(self.uid), "--regid", str(self.gid), "--clear-groups")
        return ("setpriv", *user, *_FEWER)

    @property
    def owner(self) -> str:
        """Return the user and its group as `chown` takes them, or ``""``."""
        return f"{self.uid}:{self.gid}" if self.name else ""

    @property
    def group(self) -> str:
        """Return root with the user's group, for what the user may read and not change."""
        return f"0:{self.gid}" if self.name else ""


def unprivileged(host: Host, records: Records) -> Identity:
    """Return the campaign's own user, recorded so that it stays the same; for non-root, ourselves.

    It has a number only: no account is made, and no process and no file has it yet.
    """
    if not is_root(host):
        return Identity()
    for made in things(records.entries(), KIND):
        return Identity(f"mydyno-{made.place}", int(made.place), int(made.place))
    listed = host.run(Action(("sh", "-c", _TAKEN))).stdout.decode(errors="replace")
    taken = {line.split(":")[2] for line in listed.splitlines() if line.count(":") > 1}
    free = [uid for uid in _RANGE if str(uid) not in taken]
    if not free:
        raise SpecError(f"{host.name}: no user from {_RANGE[0]} to {_RANGE[-1]} is free")
    uid = random.choice(free)
    records.add(Made(KIND, str(uid)))
    return Identity(f"mydyno-{uid}", uid, uid)


def forget(records: Records) -> None:
    """Release a campaign's user, when nothing of the campaign is left."""
    for made in things(records.entries(), KIND):
        with suppress(JournalError):  # it is gone, recorded or not
            records.add(Removed(KIND, made.place))


def refuse_unreachable(host: Host, identity: Identity, path: Path) -> None:
    """Raise `SpecError` if that user cannot pass to the path because of a folder above it."""
    done = host.run(Action((*identity.drop(), "test", "-x", str(path))))
    if done.returncode:
        who = f"the server's user ({identity.uid})" if identity.name else "this user"
        raise SpecError(
            f"{path}: {who} cannot reach it: use a folder that every user may pass through "
            "(not below /root)"
        )


LOOPBACK = "127.0.0.1"
NO_TLS = "loose-ssl = 0"  # the clients of MariaDB 11.4 leave a server that has none
LONGEST_SOCKET = 100  # sun_path holds 107 bytes; some are left for a server's own suffix


@dataclass(frozen=True, slots=True)
class Place:
    """The files of one instance.

    `home` is root's, and the server's user may pass through it; `data`, `run` with the socket, and
    `tmp` are the only folders that this user can write to.
    """

    home: Path
    data: Path
    run: Path

    @property
    def options(self) -> Path:
        """Return the option file that the server is started with."""
        return self.home / "my.cnf"

    @property
    def owned(self) -> Path:
        """Return the option file that holds exactly a treatment's settings."""
        return self.home / "zz-mydyno.cnf"

    @property
    def launch(self) -> Path:
        """Return the folder of the layers' launch files: alloc, env, limits, net."""
        return self.home / "launch"

    @property
    def admin(self) -> Path:
        """Return the client option file of the server's root account."""
        return self.home / "admin.cnf"

    @property
    def load(self) -> Path:
        """Return the client option file of the account for loads."""
        return self.home / "load.cnf"

    @property
    def socket(self) -> Path:
        """Return the socket's path."""
        return self.run / "mysqld.sock"

    @property
    def pid_file(self) -> Path:
        """Return the file in which we keep the running server's process id."""
        return self.home / "mysqld.pid"

    @property
    def tmp(self) -> Path:
        """Return the folder of the server's temporary files."""
        return self.home / "tmp"

    @property
    def tls(self) -> Path:
        """Return the folder of the authority, and of the certificates that it signed."""
        return self.home / "tls"

    @property
    def log(self) -> Path:
        """Return the error log, which we open for the server; each start appends to it."""
        return self.home / "mysqld.err"

    @property
    def slow_log(self) -> Path:
        """Return the slow log, beside the data, where servers have it: its cost is theirs."""
        return self.data / "slow.log"


# Of a copy of another server's data: it follows nobody, and none of its events comes due.
ALONE = (
    ("event_scheduler", "OFF"),
    ("loose_skip_slave_start", "1"),
    ("loose_skip_replica_start", "1"),
)
# Each start takes the pages that `preload` lists, and no stop replaces the list.
_PRELOADED = (
    "innodb_buffer_pool_load_at_startup = ON",
    "innodb_buffer_pool_dump_at_shutdown = OFF",
)


def options(
    build: Build,
    place: Place,
    address: str = "",
    port: int = 0,
    more: Sequence[tuple[str, str]] = (),
) -> str:
    """Return the instance's own option file; without an address to listen on it has no network."""
    lines = [
        "# written by mydyno at every start; a treatment's settings are in zz-mydyno.cnf",
        "[mysqld]",
        f"basedir = {place_text(build.basedir)}",
        f"datadir = {place_text(place.data)}",
        f"socket = {place_text(place.socket)}",
        f"pid_file = {place_text(place.run / 'mysqld.pid')}",
        f"tmpdir = {place_text(place.tmp)}",
        # a package's own default may be a folder that is not there, and the server then stops
        f"secure_file_priv = {place_text(place.tmp)}",
        f"slow_query_log_file = {place.slow_log.name}",
        *_listening(address, port),
        *build.quirks.options,
        *(f"{name} = {quoted(name, value)}" for name, value in more),
        *_PRELOADED,
        f"!include {place.owned}",
    ]
    return "\n".join(lines) + "\n"


def _listening(address: str, port: int) -> list[str]:
    """Return where to listen; a load that comes from elsewhere is not looked up by its name."""
    if not address:
        return ["skip_networking"]
    lines = [f"bind_address = {address}", f"port = {port}"]
    return lines if address == LOOPBACK else [*lines, "skip_name_resolve"]


def client_options(
    user: str, password: str, socket: Path | None = None, tls: Sequence[str] = ()
) -> str:
    """Return a client option file; with a socket, one that connects by itself."""
    secret = one_line("password", password)
    lines = ["[client]", f"user = {one_line('user', user)}", f"password = {secret}", *tls]
    if socket:
        lines += [f"socket = {place_text(socket)}", "protocol = socket", NO_TLS]
    return "\n".join(lines) + "\n"


def address_lines(socket: Path, host: str, port: int, database: str) -> Sequence[str]:
    """Return the lines by which a load's client finds the server: TCP where there is a host.

    The database has a section of its own: only the command-line client knows it.
    """
    where: tuple[str, ...] = (f"socket = {place_text(socket)}", "protocol = socket")
    if host:
        where = (f"host = {host}", f"port = {port}", "protocol = tcp")
    return (*where, "[mysql]", f"database = {database}")


def password_in(text: str) -> str:
    """Return the password of a client option file that we wrote, or nothing."""
    found = [line for line in text.splitlines() if line.startswith("password = ")]
    return found[0].removeprefix("password = ") if found else ""


def place_text(path: Path) -> str:
    """Return a path as an option file's value, quoted so that spaces and # survive."""
    return quoted("a path", str(path))


# the names that sysbench 1.0 expects in the folder it is started in
CA, CERTIFICATE, KEY = "cacert.pem", "client-cert.pem", "client-key.pem"
SERVER_CERTIFICATE, SERVER_KEY = "server-cert.pem", "server-key.pem"
OFF = "off"
_SUITE = "TLS_"  # how the ciphers of TLS 1.3 begin


def server_options(build: Build, folder: Path, tls: str) -> list[tuple[str, str]]:
    """Return the server's options for `tls`: off, on, a version, or a cipher.

    With TLS on, a session over TCP without it is refused, where the server can do so.
    """
    quirks = build.quirks.tls
    if tls == OFF:
        return [quirks.off]
    files = {"ssl_ca": CA, "ssl_cert": SERVER_CERTIFICATE, "ssl_key": SERVER_KEY}
    options = [(name, str(folder / file)) for name, file in files.items()]
    if quirks.requires:
        options.append(("require_secure_transport", "1"))
    return options + _narrowed(quirks, tls)


def client_lines(folder: Path, tls: str) -> list[str]:
    """Return the lines of a client's option file, for the clients of every flavour."""
    if tls == OFF:
        return [NO_TLS, "loose-ssl-mode = DISABLED"]
    files = {"ssl-ca": CA, "ssl-cert": CERTIFICATE, "ssl-key": KEY}
    lines = [f'{name} = "{folder / file}"' for name, file in files.items()]
    return [*lines, "loose-ssl-mode = REQUIRED"]


def _narrowed(quirks: TlsQuirks, tls: str) -> list[tuple[str, str]]:
    """Return the options that leave one version or one cipher."""
    if tls.startswith("TLSv"):
        return [("tls_version", tls)]
    if tls.startswith(_SUITE):
        own = tls.replace(_SUITE, "TLS13-", 1).replace("AES_", "AES").replace("_", "-")
        named = ("ssl_cipher", f"{tls}:{own}") if quirks.wolfssl else ("tls_ciphersuites", tls)
        return [("tls_version", "TLSv1.3"), named]
    return [] if tls == "on" else [("tls_version", "TLSv1.2"), ("ssl_cipher", tls)]
