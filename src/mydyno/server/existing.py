"""A server that is not ours, looked at: a fixed list of statements, and files of its host.

Nothing is changed: the session is read-only, no statement sets anything global, none opens tables.
"""

import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import PurePosixPath

from mydyno.host import DISKS, Host
from mydyno.journal.records import Records, Removed, things
from mydyno.model import Action, HostError, JournalError, SpecError
from mydyno.server.client import rows
from mydyno.stack.alloc import rejoined
from mydyno.stack.flavours import quirks, recognised

SERVER = "SELECT CONCAT_WS(' ', @@hostname, @@datadir, @@port);"  # which one it is
BENCH = "bench database"  # the kind of record of a load's own database
DATABASE = "mydyno_bench"
_MARK = "mydyno:"
_SQL_S = 60.0  # for all statements that do not wait
_CLIENTS = "command -v mariadb || command -v mysql"

# What is looked for among the processes: pid, program, who runs it, words of its command line.
# The real user counts: anybody can run the server's own program, or another by the name of mysqld.
_RUNNING = """
known=" 0 $(id -u) $(id -u mysql 2>/dev/null) "
for p in /proc/[0-9]*; do
    read -r name <"$p/comm" 2>/dev/null || continue
    case $name in mysqld|mariadbd) ;; *) continue;; esac
    user=$(awk '/^Uid:/ {print $2}' "$p/status")
    case $known in *" ${user:-unknown} "*) user=known;; esac
    printf '%s\\t' "${p#/proc/}" "$name" "$user"
    printf '%s\\n' "$(tr '\\0\\n' '\\t ' <"$p/cmdline")"
done; :
"""

_FILES = """
mark=$1; shift
for f; do
    if [ -d "$f" ]; then for g in "$f"/*.cnf; do [ -f "$g" ] && set -- "$@" "$g"; done; fi
done
for f; do
    [ -f "$f" ] && [ "$(stat -Lc %s "$f")" -le 1048576 ] || continue
    printf '%s %s %s\\n' "$mark" "$(stat -Lc %a "$f")" "$f"; cat "$f"; echo
done; :
"""
_ORDER = ("/etc/my.cnf", "/etc/mysql/my.cnf", "/usr/etc/my.cnf")
_INCLUDES = re.compile(r"^\s*!include(?:dir)?\s+(.+?)\s*$", re.MULTILINE)
# Not the options that name a plugin, such as mysql_native_password.
_SECRET = re.compile(
    r"^(?!\s*(?:default[-_]authentication[-_]plugin|authentication[-_]policy)\s*=)"
    r".*(?:pass(?:word|wd|phrase)|pwd).*$",
    re.MULTILINE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class ServerProcess:
    """A running server of a host: its pid, its program, its command line.

    `is_known` is whether root, mysql or this user runs it.
    """

    pid: int
    program: str
    words: Sequence[str]
    is_known: bool = False

    def option(self, name: str) -> str:
        """Return the value of an option of its command line, or ``""``."""
        found = [w.partition("=")[2] for w in self.words if w.startswith(f"--{name}=")]
        return found[-1] if found else ""


@dataclass(frozen=True, slots=True)
class Existing:
    """A server that answers: its version, and how its client is called.

    `process` is None where it runs on another machine than `host`.
    """

    host: Host
    argv: tuple[str, ...]
    flavour: str
    version: tuple[int, int, int]
    text: str
    pid_file: str
    data: str
    process: ServerProcess | None


@dataclass(frozen=True, slots=True)
class Looked:
    """What the statements returned; `looks` are the status before and after `seconds`."""

    variables: Mapping[str, str]
    looks: tuple[Mapping[str, str], Mapping[str, str]]
    seconds: float
    running: Sequence[float]
    origins: Mapping[str, tuple[str, str]]
    replica: Mapping[str, str]
    data_bytes: float | None
    problems: Sequence[str] = field(default_factory=tuple)


def processes(host: Host) -> list[ServerProcess]:
    """Return the servers that run on a host."""
    done = host.run(Action(("sh", "-c", _RUNNING))).check()
    found = []
    for line in filter(None, done.stdout.decode(errors="replace").split("\n")):
        pid, program, user, *words = line.split("\t")
        given = [word for word in words if word]
        found.append(ServerProcess(int(pid), program, given, is_known=user == "known"))
    return sorted(found, key=lambda one: one.pid)


def reached(host: Host, named: str = "") -> Existing:
    """Return the server to look at: by a client option file or a socket, or the only one there.

    Raises `SpecError` where there is none, or several and none is named.
    """
    there = processes(host)
    argv = (_client(host), *_named(host, named, there), "--batch", "--skip-column-names")
    asked = "SELECT @@version, @@version_comment, @@pid_file, @@datadir;"
    done = host.run(Action(argv, asked.encode()), timeout_s=_SQL_S)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()[-300:]
        raise HostError(
            f"{host.name}: the server does not answer: {words}; name a client option file with "
            "--server FILE"
        )
    ((number, comment, pid_file, data),) = rows(done.stdout)
    place = PurePosixPath(data) / pid_file
    return Existing(
        host,
        argv,
        recognised(f"{number} {comment}"),
        _version(number),
        f"{number} ({comment})",
        str(place),
        data,
        _own(host, place, there),
    )


def dropped(host: Host, records: Records) -> tuple[list[str], list[str]]:
    """Drop the databases that a campaign made on a server; return lines on what was done or not."""
    removed: list[str] = []
    failed: list[str] = []
    for made in things(records.entries(), BENCH):
        argv = (_client(host), f"--defaults-file={made.facts['at']}", "--batch", "-N")
        done = host.run(Action(argv, SERVER.encode()), timeout_s=_SQL_S)
        now = done.stdout.decode(errors="replace").strip()
        if not done.returncode and now != made.facts.get("server", now):
            failed.append(
                f"{made.place}: {made.facts['at']} reaches {now} now, not {made.facts['server']}; "
                "drop it there yourself"
            )
            continue
        if not done.returncode:
            statement = f"DROP DATABASE IF EXISTS {DATABASE};"
            done = host.run(Action(argv, statement.encode()), timeout_s=_SQL_S)
        if done.returncode:
            words = done.stderr.decode(errors="replace").strip()[-300:]
            failed.append(f"{made.place}: {words}; drop it when the server answers")
        else:
            with suppress(JournalError):  # it is gone even if that is not recorded
                records.add(Removed(made.kind, made.place))
            removed.append(f"database {made.place}")
    return removed, failed


def _client(host: Host) -> str:
    found = host.run(Action(("sh", "-c", _CLIENTS))).stdout.decode().split()
    if not found:
        raise HostError(
            f"{host.name}: no mariadb or mysql client; install mariadb-client or mysql-client"
        )
    return found[0]


def _named(host: Host, named: str, there: Sequence[ServerProcess]) -> tuple[str, ...]:
    """Return the client's options for the server that is meant."""
    if "://" in named:
        raise SpecError(
            f"{named}: write host, port, user and password into [client] of an option file, and "
            "name that with --server FILE"
        )
    if named and not named.startswith("/"):  # what restores later has another working folder
        full = host.run(Action(("realpath", "-m", "--", named))).check().stdout
        named = full.decode(errors="surrogateescape").removesuffix("\n")
    if named:
        is_socket = host.run(Action(("test", "-S", named))).returncode == 0
        return (f"--{'socket' if is_socket else 'defaults-file'}={named}",)
    if len(there) != 1:
        raise SpecError(_unclear(host, there))
    socket = there[0].option("socket")
    if socket and not there[0].is_known:  # the client would send a password there
        raise SpecError(
            f"{host.name}: another user than root and mysql runs the server, pid {there[0].pid}, "
            f"with the socket {socket}; name a client option file with --server FILE"
        )
    return (f"--socket={socket}",) if socket else ()


def _unclear(host: Host, there: Sequence[ServerProcess]) -> str:
    if not there:
        return (
            f"{host.name}: no server runs here; start it, or name one elsewhere with --server FILE"
        )
    listed = "; ".join(
        f"pid {one.pid}: --server {one.option('socket') or 'its socket'}" for one in there
    )
    return f"{host.name}: {len(there)} servers run here; name one ({listed})"


def _version(text: str) -> tuple[int, int, int]:
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", text)
    if not found:
        raise HostError(f"the server's version is {text[:80]!r}; expected one such as 8.0.36")
    major, minor, patch = map(int, found.groups())
    return major, minor, patch


def _own(host: Host, place: PurePosixPath, there: Sequence[ServerProcess]) -> ServerProcess | None:
    """Return the process that the pid file names, where it is a server of this host."""
    read = host.run(Action(("head", "-c", "20", str(place)))).stdout.decode(errors="replace")
    pid = int(read) if read.strip().isdigit() else 0
    return next((one for one in there if one.pid == pid), None)


def statements(flavour: str, version: Sequence[int], seconds: int) -> list[str]:
    """Return every statement that an audit runs, in order; no other is sent."""
    look = quirks(flavour, tuple(version)).look
    found = ["SET SESSION lock_wait_timeout = 1", "SET SESSION TRANSACTION READ ONLY"]
    found += [f"SET SESSION {look.limit}"] if look.limit else []
    found += [_mark("variables"), "SHOW GLOBAL VARIABLES", _mark("before"), "SHOW GLOBAL STATUS"]
    found += [_mark("origins"), look.origins, _mark("data")]
    if look.tablespaces:
        sizes = f"information_schema.{look.tablespaces}"
        found.append(f"SELECT SUM(file_size) FROM {sizes}")  # noqa: S608 - a constant
    found += [_mark("replica"), look.replica, _mark("running")]
    found += ["DO SLEEP(1)", "SHOW GLOBAL STATUS LIKE 'Threads_running'"] * seconds
    return [text for text in (*found, _mark("after"), "SHOW GLOBAL STATUS", _mark("end")) if text]


def _mark(name: str) -> str:
    return f"SELECT '{_MARK}{name}', UNIX_TIMESTAMP(SYSDATE(6))"


def look(server: Existing, seconds: int) -> Looked:
    """Return variables, status and more of a server, watched for so long; it is one session."""
    lines = statements(server.flavour, server.version, seconds)
    script = "".join(f"{text};\n" for text in lines)
    # A statement without the right is a gap, not the end.
    argv = (*server.argv, "--column-names", "--force")
    done = server.host.run(Action(argv, script.encode()), timeout_s=_SQL_S + seconds)
    parts, times = _sections(done.stdout)
    if "end" not in times:
        words = done.stderr.decode(errors="replace").strip()[-300:]
        raise HostError(f"{server.host.name}: the server ended the session: {words}")
    status = [_pairs(parts["before"]), _pairs(parts["after"])]
    if not _pairs(parts["variables"]) or not status[1]:
        raise HostError(f"{server.host.name}: the server returned no variables; check the account")
    summed = _values(parts["data"])[0][0] if parts["data"] else "NULL"
    return Looked(
        variables={name.lower(): value for name, value in _pairs(parts["variables"]).items()},
        looks=(status[0], status[1]),
        seconds=times["after"] - times["before"] if seconds else 0.0,
        running=[float(value) for _, value in _pairs_of(parts["running"])],
        origins=_origin(parts["origins"]),
        replica=_channels(parts["replica"]),
        data_bytes=float(summed) if re.fullmatch(r"\d+(\.\d+)?", summed) else None,
        problems=tuple(done.stderr.decode(errors="replace").splitlines()[:10]),
    )


def _sections(raw: bytes) -> tuple[dict[str, list[tuple[str, ...]]], dict[str, float]]:
    """Return the rows after each mark, names of columns first, and the times of the marks."""
    parts: dict[str, list[tuple[str, ...]]] = {}
    times: dict[str, float] = {}
    name = ""
    for row in rows(raw):
        if row[0].startswith(_MARK):
            name = row[0].removeprefix(_MARK)
            if row[1][0].isdecimal():  # else the names of the mark's own columns
                parts[name], times[name] = [], float(row[1])
        elif name:
            parts[name].append(row)
    return parts, times


def _values(found: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return rows without the names of columns, which precede each result of a section."""
    return [row for row in found if row != found[0]]


def _pairs_of(found: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, str]]:
    return ((row[0], row[1]) for row in _values(found) if len(row) == len(("name", "value")))


def _pairs(found: Sequence[tuple[str, ...]]) -> dict[str, str]:
    return dict(_pairs_of(found))


# where a value comes from, by either flavour's word
_SAME = {
    "config": "file", "global": "file", "explicit": "file", "extra": "file", "user": "file",
    "command-line": "command_line", "command_line": "command_line", "sql": "dynamic",
    "dynamic": "dynamic", "persisted": "persisted", "auto": "auto",
}  # fmt: skip


def _origin(found: Sequence[tuple[str, ...]]) -> dict[str, tuple[str, str]]:
    return {
        row[0]: (_SAME.get(row[1], "default"), "" if row[2] == "NULL" else row[2])
        for row in _values(found)
        if len(row) == len(("name", "origin", "path"))
    }


def _channels(found: Sequence[tuple[str, ...]]) -> dict[str, str]:
    """Return what is known of replication, by column; by channel too where it has a name."""
    columns: dict[str, str] = {}
    for row in _values(found):
        named = dict(zip((name.lower() for name in found[0]), row, strict=False))
        channel = named.get("channel_name", "") or named.get("connection_name", "")
        columns |= {f"{channel}.{n}" if channel else n: value for n, value in named.items()}
    return columns


def host_outputs(server: Existing) -> dict[str, str]:
    """Return what the host printed of itself and of the server's process, by section.

    A server on another machine has none.
    """
    if server.process is None:
        return {}
    script = DISKS + files("mydyno.server").joinpath("existing.sh").read_text()
    parts = _marked(server.host, script, str(server.process.pid), server.data)
    return {name: "\n".join(lines) for name, lines in parts.items()}


def _marked(host: Host, script: str, *words: str) -> dict[str, list[str]]:
    """Return the lines that a script prints, by what follows its first word, a mark, in a line.

    The mark is random, so that no file that is shown can hold it.
    """
    mark = f"@{secrets.token_hex(8)}"
    done = host.run(Action(("sh", "-c", script, "look", mark, *words)), timeout_s=_SQL_S)
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in done.stdout.decode(errors="replace").splitlines():
        if line.startswith(f"{mark} "):
            lines = found.setdefault(line.partition(" ")[2], [])
        else:
            lines.append(line)
    return found


_TEXTS = """
mark=$1; shift
for f; do
    [ -f "$f" ] && [ -r "$f" ] && printf '%s %s\\n' "$mark" "$f" && head -c 65536 -- "$f" && echo
done; :
"""


def texts_of(host: Host, paths: Sequence[str]) -> dict[str, str]:
    """Return the begin of each file that is there, by path; one round trip."""
    return {
        path: "\n".join(lines)
        for path, lines in _marked(host, _TEXTS, *dict.fromkeys(paths)).items()
    }


def environment_of(host: Host, pid: int) -> dict[str, str] | None:
    """Return the environment that a process was started with, None where it may not be read."""
    done = host.run(Action(("cat", f"/proc/{pid}/environ")))
    if done.returncode:
        return None
    words = rejoined(done.stdout.decode(errors="replace").split("\0"))
    return {name: value for name, _, value in (word.partition("=") for word in words) if name}


def group_suffix(server: Existing, environment: Mapping[str, str]) -> str:
    """Return what a server adds to the names of its groups of option files, ``""`` for most."""
    given = server.process.option("defaults-group-suffix") if server.process else ""
    return given or environment.get("MYSQL_GROUP_SUFFIX", "")


def option_files(
    server: Existing, environment: Mapping[str, str]
) -> tuple[tuple[str, ...], dict[str, str], dict[str, str]]:
    """Return the option files that are read first, all files by path, and their modes.

    Lines with a password are left out.
    """
    if server.process is None or "--no-defaults" in server.process.words:
        return (), {}, {}
    only = server.process.option("defaults-file")
    extra = server.process.option("defaults-extra-file")
    home = environment.get("MYSQL_HOME", "")  # mysqld_safe sets it
    own = (f"{home}/my.cnf" if home.startswith("/") else "", extra)
    start = (only,) if only else (*_ORDER, *filter(None, own))
    texts: dict[str, str] = {}
    modes: dict[str, str] = {}
    asked, seen = set(start), set[str]()
    while asked:
        seen |= asked
        new = {}
        for head, lines in _marked(server.host, _FILES, *sorted(asked)).items():
            mode, _, path = head.partition(" ")
            modes[path] = mode
            new[path] = "\n".join(_SECRET.sub("# a password was here", line) for line in lines)
        texts |= new
        asked = {path for text in new.values() for path in _INCLUDES.findall(text)} - seen
    return start, texts, modes
