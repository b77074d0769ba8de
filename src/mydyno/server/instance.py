"""A private instance of a server: made, started, queried and stopped."""

import random
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from mydyno.host import Host, Process, Running, halt, processes
from mydyno.host.files import make, resolved
from mydyno.journal.records import Made, MemoryRecords, Records, Removed, things
from mydyno.model import Action, HostError, JournalError, RefusedError
from mydyno.server import client, place, programs
from mydyno.server.initialise import (
    ensure_authority,
    ensure_certificate,
    furnish,
    initialise,
    install,
    password_of,
    remove_sockets,
)
from mydyno.server.place import KIND as USER
from mydyno.server.place import Build, Identity, Place, refuse_unreachable, unprivileged
from mydyno.stack import cgroup

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LOCAL_PORT = re.compile(rb"^\s*\d+: [0-9A-F]+:([0-9A-F]{4}) ", re.MULTILINE)
_RANGE = range(20000, 32000)  # below the kernel's own choice for outgoing connections


def free_port(host: Host) -> int:
    """Return a port between 20000 and 31999 that no socket of the host holds just now."""
    raw = b"".join(host.run(Action(("cat", table))).stdout for table in _TABLES)
    free = sorted(set(_RANGE) - used(raw))
    if not free:
        raise HostError(f"{host.name}: no free port from {_RANGE.start} to {_RANGE.stop - 1}")
    return random.choice(free)


def used(raw: bytes) -> set[int]:
    """Return the local ports in the text of /proc/net/tcp and tcp6."""
    return {int(port, 16) for port in _LOCAL_PORT.findall(raw)}


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
    rows = partial(client.query, host, argv, timeout_s=_PATIENCE_S)
    known = {(row[0].upper(), row[1].upper()) for row in rows(_COLUMNS)}
    paths = {
        row[0]
        for table, column in _PLACES
        if (table, column) in known
        for row in rows(f"SELECT {column} FROM information_schema.{table}")  # noqa: S608 - our own names
        if row[0] not in {"", "NULL"}
    }
    # a relative path is one from `data`
    return sorted(p for p in paths if ".." in Path(p).parts or not (data / p).is_relative_to(data))


KIND = "server"
_STEP_S = 0.02
_PORT_ATTEMPTS = 3
_PORT_TAKEN = ("Address already in use", "Bind on TCP/IP port")
_SHOWN_LINES = 8
_STARTS_S = 600.0  # new redo files are written, a large pool is allocated; its end is seen at once
_RECOVERY_S = 3600.0  # the redo log of a copy that was not shut down in order
_LOG_LINES = 400
# Log lines that are not the cause of a failed start.
_CHATTER = (
    *("[Note]", "[System]", "[ERROR] Aborting", "Plugin initialization aborted"),
    *(
        "Could not increase number of max_open_files",
        "registration as a STORAGE ENGINE failed",
        "storage engine: InnoDB",
    ),
)
_STAMP = re.compile(r"[\d-]{8,10}[T ] ?[\d:.+Z]+ \d+ (?=\[)")

Options = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """How a load reaches the instance; `socket` is empty over TCP, `tcp_port` 0 over the socket."""

    socket: str
    tcp_host: str
    tcp_port: int
    user: str
    password_file: Path
    database: str


@dataclass(frozen=True, slots=True)
class Added:
    """What a start has besides a treatment: options; `listens`: on the loopback if nowhere else."""

    options: Options = ()
    listens: bool = False


@dataclass(slots=True)
class _Started:
    """The process that was started, and where its error log begins."""

    process: Running | None = None
    log_from: int = 0


@dataclass(slots=True, eq=False)
class Instance:
    """One private server; make it with `prepare`, use it from one thread that outlives it.

    The kernel ends the server when the thread that called `start` ends, whatever ends it.  With an
    `address` it listens there.  `original` is the data directory that its data are a copy of.
    `added` is what its next start has besides.
    """

    host: Host
    build: Build
    place: Place
    identity: Identity
    records: Records
    address: str = ""
    original: Path | None = None
    added: Added = Added()
    _started: _Started = field(default_factory=_Started)
    _listen: tuple[str, int] = ("", 0)

    @property
    def client(self) -> tuple[str, ...]:
        """Return the arguments of a client logged in as root; SQL goes in by stdin."""
        return client.with_options(self.build, self.place.admin)

    @property
    def pid(self) -> int:
        """Return the server's process id, 0 when it does not run."""
        return (
            self._started.process.pid
            if self._started.process and self._started.process.returncode() is None
            else 0
        )

    @property
    def endpoint(self) -> Endpoint:
        """Return how a load reaches the running instance."""
        host, port = self._listen
        socket = "" if host else str(self.place.socket)
        user, database = client.LOAD_USER, client.DATABASE
        return Endpoint(socket, host, port, user, self.place.load, database)

    def initialise(self) -> None:
        """Fill the data folder: system tables, accounts, an empty `sbtest`; leave it stopped.

        The owned option file's settings apply.  Raise `RefusedError` if the folder holds
        anything, `HostError` with the server's words if it cannot be filled.
        """
        self._data_folder()
        self.records.add(Made(KIND, str(self.place.options)))
        initialise(self.host, self.build, self.place, self.identity)
        self.records.add(Removed(KIND, str(self.place.options)))
        self._make_accounts()

    def adopt(self) -> None:
        """Put our accounts into a copy of another server's data.

        Raise `HostError` with the server's words where it cannot start on them, `RefusedError`
        where they name files that lie outside, which a server would write into.
        """
        programs.refuse_unavailable(self.host, root=bool(self.identity.name))
        refuse_unreachable(self.host, self.identity, self.place.data)
        self._make_accounts((("skip_grant_tables", "1"),), within_s=_RECOVERY_S)

    def start(self, *, timeout_s: float = _STARTS_S) -> None:
        """Start the server from its launch files and return when it answers.

        Raise `HostError` with the last lines of its error log if it refuses; a port taken
        between our look and its bind is answered by another port.
        """
        listing = Action(("grep", "-r", "-H", "", "--", str(self.place.launch)))
        asked = programs.parse_launch(self.host.run(listing).stdout, self.place.launch)
        if self.address:  # and only now: before it had accounts, nobody else was to reach it
            there = {"transport": "tcp", "address": self.address}
            asked = replace(asked, net={**there, **asked.net})
        for attempt in range(1, _PORT_ATTEMPTS + 1):
            self._start_once(asked)
            try:
                self.ready(timeout_s=timeout_s)
                self._known()
                return
            except HostError as error:
                self.stop()
                listens = self._listen[1] or self.added.listens
                taken = listens and any(words in str(error) for words in _PORT_TAKEN)
                if attempt == _PORT_ATTEMPTS or not taken:
                    raise

    def ready(self, *, timeout_s: float = 60.0, _argv: tuple[str, ...] = ()) -> None:
        """Return when the server answers a query; raise `HostError` if it ends or takes longer."""
        end, words = time.monotonic() + timeout_s, ""
        while time.monotonic() < end:
            if self.pid == 0:
                raise HostError(self._refusal("refused to start under its settings"))
            if not (words := self._unanswered(_argv or self.client, end - time.monotonic())):
                return
            time.sleep(_STEP_S)
        raise HostError(self._refusal(f"does not answer after {timeout_s:g} s{words}"))

    def stop(self, *, grace_s: float = 60.0) -> None:
        """Shut the server down and return when it is gone; SIGKILL comes after `grace_s`."""
        if self._started.process is not None:
            halt(self._started.process, grace_s=grace_s)
            self._started.process = None
            self.host.run(Action(("rm", "-f", "--", str(self.place.pid_file))))
            self.records.add(Removed(KIND, str(self.place.options)))
            _remove_groups(self.host, self.records, cgroup.group_of(self.place.home))

    def close(self) -> None:
        """Stop the server and remove what lies outside its home."""
        self.stop()
        remove_sockets(self.host, self.records)

    def query(self, sql: str, *, timeout_s: float = 60.0) -> list[tuple[str, ...]]:
        """Return the rows that root gets for a statement; raise `HostError` with the complaint."""
        return client.query(self.host, self.client, sql, timeout_s)

    def version(self) -> str:
        """Return the running server's version and comment, in its own words."""
        return " ".join(self.query("SELECT VERSION(), @@version_comment")[0])

    def error_tail(self, lines: int = _SHOWN_LINES) -> list[str]:
        """Return the last lines of the error log since the last start."""
        action = Action(("tail", "-c", f"+{self._started.log_from + 1}", str(self.place.log)))
        text = self.host.run(action).stdout.decode(errors="replace")
        return [line for line in text.splitlines() if line.strip()][-lines:]

    def _start_once(self, asked: programs.Launch, more: Options = ()) -> None:
        if self.pid:
            raise HostError(f"{self.place.home}: the instance already runs as {self.pid}")
        tcp = asked.net.get("transport") == "tcp"
        address = asked.net.get("address", place.LOOPBACK)
        self._listen = (address, free_port(self.host)) if tcp else ("", 0)
        options = (*self._tls(asked.net.get("tls", "")), *self.added.options, *more)
        options += place.ALONE if self.original else ()
        silent = tcp or not self.added.listens
        listen = self._listen if silent else (place.LOOPBACK, free_port(self.host))
        text = place.options(self.build, self.place, *listen, options)
        install(self.host, self.place.options, "640", text)
        stale = (self.place.pid_file, self.place.socket, f"{self.place.socket}.lock")
        self.host.run(Action(("rm", "-f", "--", *map(str, stale)))).check()
        size = self.host.run(Action(("stat", "-c", "%s", str(self.place.log)))).check()
        self._started.log_from = int(size.stdout)
        action = programs.command(self.build, self.place, self.identity, asked, self.original)
        if asked.cgroup:
            self.records.add(Made(cgroup.KIND, cgroup.group_of(self.place.home)))
        self.records.add(Made(KIND, str(self.place.options)))
        self._started.process = self.host.start(action, stderr=self.place.log)
        install(self.host, self.place.pid_file, "600", f"{self._started.process.pid}\n")

    def _known(self) -> None:
        """Record the process that answers, so that nothing else is ever taken for it."""
        now = processes.identify(self.host, self.pid)
        self.records.add(Made(KIND, str(self.place.options), now.facts if now else {}))

    def _tls(self, asked: str) -> Options:
        """Return the server's options for TLS; write the load's option file, with the address."""
        home = self.place
        lines = place.client_lines(home.tls, asked) if asked else ()
        password = password_of(self.host, home.load)
        address = place.address_lines(home.socket, *self._listen, client.DATABASE)
        text = place.client_options(client.LOAD_USER, password, None, (*lines, *address))
        install(self.host, home.load, "600", text)
        if not asked:
            return ensure_certificate(self.host, self.build, home)
        if asked != place.OFF:
            ensure_authority(self.host, home.tls, self.identity)
        return place.server_options(self.build, home.tls, asked)

    def _unanswered(self, argv: tuple[str, ...], patience_s: float) -> str:
        if self.host.run(Action(("test", "-S", str(self.place.socket)))).returncode:
            return ", no socket yet"
        done = self.host.run(Action(argv, b"SELECT 1;\n"), timeout_s=max(1.0, patience_s))
        words = " ".join(done.stderr.decode(errors="replace").split())
        return f", its client: {words[-300:]}" if done.returncode else ""

    def _refusal(self, what: str) -> str:
        lines = self.error_tail(_LOG_LINES)
        relevant = [line for line in lines if not any(word in line for word in _CHATTER)] or lines
        text = " | ".join(_STAMP.sub("", line) for line in relevant[-_SHOWN_LINES:])
        return f"{self.build.mysqld} {what}: {text}; its log: {self.place.log}"

    def _data_folder(self) -> None:
        data = self.place.data
        found = self.host.run(Action(("find", str(data), "-mindepth", "1", "-maxdepth", "1")))
        if found.stdout:
            raise RefusedError(f"{data} is not empty: name an empty folder, or remove it")
        self.host.run(Action(("rmdir", "--", str(data))))
        make(self.host, data, "700", owner=self.identity.owner)
        refuse_unreachable(self.host, self.identity, data)

    def _make_accounts(self, more: Options = (), *, within_s: float = 60.0) -> None:
        """Give a server that takes root without a password its accounts; it is stopped then."""
        argv = client.without_password(self.build, self.place.socket)
        self._start_once(programs.Launch(), more)
        try:
            self.ready(timeout_s=within_s, _argv=argv)
            if self.original:
                refuse(self.host, argv, self.place.data, self.original)
            text = client.statements(
                self.build,
                client.query(self.host, argv, client.USERS, 60.0),
                native=bool(client.query(self.host, argv, client.NATIVE_PLUGIN, 60.0)),
                root_password=password_of(self.host, self.place.admin),
                load_password=password_of(self.host, self.place.load),
                adopted=self.original is not None,
            )
            client.query(self.host, argv, text, 60.0)
        finally:
            self.stop()


def prepare(
    host: Host,
    build: Build,
    *,
    places: tuple[Path, Path],
    records: Records | None = None,
    address: str = "",
    original: str = "",
) -> Instance:
    """Return an instance that lives in the first of `places` with its data in the second.

    Nothing is started.  With an `address` it listens there, for a load on another host, and not on
    its socket alone.  A copy of an `original` data directory runs alone: it follows no other
    server, none of its events comes due, and it can write to its own folders only.  Raise
    `SpecError` if the user that the server will run as cannot reach a path.
    """
    record = records or MemoryRecords()
    identity = unprivileged(host, record)
    where = furnish(host, build, places, identity, record)
    real = resolved(host, Path(original)) if original else None
    return Instance(host, build, where, identity, record, address, real)


def sweep(host: Host, records: Records) -> tuple[list[str], list[str]]:
    """End the recorded servers that a dead owner left; return which, and what could not be ended.

    A server is known by its process, or where a crash came before that was recorded, by our
    option file in its command line and by our user.  Nothing else is ended.
    """
    ended: list[str] = []
    failed: list[str] = []
    for made in things(records.entries(), KIND):
        try:
            left = _left(host, made, records)
            ended += [f"server {one.pid}" for one in left if processes.end(host, one)]
        except HostError as error:
            failed.append(str(error))
            continue
        with suppress(JournalError):  # it is gone, recorded or not
            records.add(Removed(KIND, made.place))
    failed += _remove_groups(host, records)
    if not failed:
        remove_sockets(host, records)
    return ended, failed


def _remove_groups(host: Host, records: Records, only: str = "") -> list[str]:
    """Remove the recorded control groups of servers that have ended; return what could not be."""
    failed = []
    for made in things(records.entries(), cgroup.KIND):
        if only not in {"", made.place}:
            continue
        done = host.run(cgroup.removal(made.place))
        if done.returncode:
            failed.append(done.stderr.decode(errors="replace").strip())
        else:
            with suppress(JournalError):  # it is gone, recorded or not
                records.add(Removed(cgroup.KIND, made.place))
    return failed


def _left(host: Host, made: Made, records: Records) -> list[Process]:
    """Return the processes that serve a home now."""
    found = processes.with_argument(host, f"--defaults-file={made.place}")
    if made.facts:
        return [one for one in found if one.same(Process.of(made.facts))]
    users = {one.place for one in things(records.entries(), USER)}
    # it is root's until it drops to its user; who is not root can only end what is his
    return [one for one in found if not users or _user_of(host, one) in {"0", *users}]


def _user_of(host: Host, process: Process) -> str:
    done = host.run(Action(("stat", "-c", "%u", f"/proc/{process.pid}")))
    return done.stdout.decode().strip()
