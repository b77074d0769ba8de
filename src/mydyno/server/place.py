"""The paths of a private instance, and the contents of its option files."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mydyno.model import one_line, quoted
from mydyno.server.build import Build

LOOPBACK = "127.0.0.1"
NO_TLS = "loose-ssl = 0"  # the clients of MariaDB 11.4 leave a server that has none
LONGEST_SOCKET = 100  # sun_path holds 107 bytes; some are left for a server's own suffix
_X_PLUGIN = (8, 0, 11)  # the first MySQL that listens for the X protocol unasked


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
    def certificate(self) -> Path:
        """Return the server's certificate, where we made one."""
        return self.home / "tls-cert.pem"

    @property
    def key(self) -> Path:
        """Return the certificate's private key."""
        return self.home / "tls-key.pem"

    @property
    def tls(self) -> Path:
        """Return the folder of the authority, and of the certificates that it signed."""
        return self.home / "tls"

    @property
    def log(self) -> Path:
        """Return the error log, which we open for the server; it is kept from start to start."""
        return self.home / "mysqld.err"


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
    listen: tuple[str, int] = ("", 0),
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
        *_listening(*listen),
        *(["mysqlx = 0"] if not build.mariadb and build.version >= _X_PLUGIN else []),
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


def password_in(text: str) -> str:
    """Return the password of a client option file that we wrote, or nothing."""
    found = [line for line in text.splitlines() if line.startswith("password = ")]
    return found[0].removeprefix("password = ") if found else ""


def place_text(path: Path) -> str:
    """Return a path as an option file's value, quoted so that spaces and # survive."""
    return quoted("a path", str(path))
