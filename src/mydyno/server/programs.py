"""Server programs of a host: found, asked for their version, started with few rights."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from mydyno.host import Completed, Host, is_root
from mydyno.host.files import distrust
from mydyno.model import Action, HostError, RefusedError, SpecError
from mydyno.server.place import Build, Identity, Place, parse
from mydyno.stack.cgroup import joined
from mydyno.stack.flavours import flavours
from mydyno.stack.known.allocators import ALLOCATORS, named_in

# Arguments: how many folders stay writable, these, how many are hidden, these, the command.
# All mounts there are become read-only, the writable folders are mounted on themselves before
# that; kernel filesystems hold no data and may refuse.  What is still writable at the end is named.
_SCRIPT = r"""
set -eu
mount --make-rprivate /
before=$(cut -d' ' -f5,6 /proc/self/mountinfo)
keep="
"
n=$1; shift
while [ "$n" -gt 0 ]; do mount --bind -- "$1" "$1"; keep="$keep$1
"; shift; n=$((n - 1)); done
writable() { case "$keep" in *"
$1
"*) return 0;; *) return 1;; esac; }
while read -r point options; do
    point=$(printf '%b' "$point")
    writable "$point" && continue
    case "$options" in rw*) options="ro${options#rw}";; esac
    mount --options-mode ignore -o "remount,bind,$options" "$point" 2>/dev/null || :
done <<END
$before
END
n=$1; shift
while [ "$n" -gt 0 ]; do
    [ ! -d "$1" ] || mount -t tmpfs -o ro,nosuid,nodev,noexec,size=4k,mode=000 none "$1"
    shift; n=$((n - 1))
done
# of several mounts at one place only the last is seen
left=$(awk '{ point = $5; how[point] = $6; sub(/.* - /, ""); kind[point] = $1 }
    END { for (p in how) if (how[p] ~ /^rw/) print kind[p], p }' /proc/self/mountinfo)
while read -r kind point; do
    case "$kind" in
    "" | proc | sysfs | cgroup | cgroup2 | devpts | mqueue | debugfs | tracefs | bpf) ;;
    securityfs | pstore | fusectl | configfs | hugetlbfs | efivarfs | nsfs | binfmt_misc) ;;
    autofs) ;;
    *) writable "$(printf '%b' "$point")" && continue
       echo "mydyno: $point cannot be made read-only for the copy" >&2; exit 97;;
    esac
done <<END
$left
END
exec "$@"
"""


def wrapped(
    argv: Sequence[str], writable: Sequence[Path], hidden: Sequence[Path], *, root: bool
) -> tuple[str, ...]:
    """Return the command that runs `argv` where only `writable` can be written to.

    `hidden` folders look empty.  Without `root` it takes a user namespace.
    """
    alone: tuple[str, ...] = ("unshare", "--mount", "--propagation", "private")
    if not root:
        alone = ("unshare", "--user", "--map-current-user", "--keep-caps", *alone[1:])
        argv = ("setpriv", "--ambient-caps=-all", "--inh-caps=-all", *argv)
    words = (str(len(writable)), *map(str, writable), str(len(hidden)), *map(str, hidden))
    return (*alone, "sh", "-c", _SCRIPT, "sandbox", *words, *argv)


def refuse_unavailable(host: Host, *, root: bool) -> None:
    """Raise `RefusedError` where the host lets us make no such namespace."""
    done = host.run(Action(wrapped(("true",), (), (), root=root)))
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise RefusedError(
            f"stack.data: {host.name}: no mount namespace can be made ({words}), so a copy could "
            "write into the files of the original; run as root, or allow user namespaces"
        )


_ENVIRONMENT_FILES = ("env", "alloc")  # the allocator's own lines win
_OTHER_FILES = ("limits", "net", "cpus", "cgroup")
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Launch:
    """What the launch files ask for: environment, limits, network, CPUs, quota; name to value."""

    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    net: Mapping[str, str] = field(default_factory=dict)
    cpus: Mapping[str, str] = field(default_factory=dict)
    cgroup: Mapping[str, str] = field(default_factory=dict)


def parse_launch(raw: bytes, folder: Path) -> Launch:
    """Return what the launch files in `folder` ask for, from their lines as `grep -H` prints them.

    A missing file asks for nothing.
    """
    files: dict[str, dict[str, str]] = {}
    for line in raw.decode(errors="surrogateescape").splitlines():
        name, _, text = line.removeprefix(f"{folder}/").partition(":")
        key, equals, value = text.partition("=")
        if equals:
            files.setdefault(name, {})[key] = value
    environment: dict[str, str] = {}
    for name in _ENVIRONMENT_FILES:
        environment |= files.get(name, {})
    return Launch(environment, *(files.get(name, {}) for name in _OTHER_FILES))


def command(
    build: Build,
    place: Place,
    identity: Identity,
    launch: Launch,
    hidden: Path | None = None,
) -> Action:
    """Return the command that becomes the server.

    Limits come first, while we may still raise them; then the drop to an unprivileged user and
    the wish to die with the thread that starts us (prctl PR_SET_PDEATHSIG, so a mydyno killed
    by SIGKILL leaves no server); then an environment of its own, so that a preload meets the
    server only and the caller's variables do not reach it.  With a folder to be `hidden` it runs
    where it can write to its own only.
    """
    limits = tuple(f"--{name}={value}:{value}" for name, value in sorted(launch.limits.items()))
    drop = identity.drop() or ("setpriv",)
    given = tuple(f"{name}={value}" for name, value in sorted(launch.environment.items()))
    clean = ("env", "-i", PATH, f"HOME={place.home}", "LC_ALL=C", *given)
    server = (str(build.mysqld), f"--defaults-file={place.options}")
    raised = ("prlimit", *limits) if limits else ()
    pinned = tuple(word for text in launch.cpus.values() for word in ("taskset", "-c", text))
    argv = (*pinned, *raised, *drop, "--pdeathsig", "KILL", *clean, *server)
    if hidden:
        own = (place.data, place.run, place.tmp)
        argv = wrapped(argv, own, (hidden,), root=bool(identity.name))
    return Action(joined(place.home, launch.cgroup, argv))


_SYSTEM = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/usr/libexec")
_NOBODY = Identity("nobody", 65534, 65534)
_ASKED_S = 120.0
_INSTALL = "apt-get install mariadb-server-core mariadb-client-core (or your MySQL packages)"


def find(host: Host, server: str) -> Build:
    """Return the build that a spec's `server` names: ``auto`` or a basedir.

    ``auto`` is the mariadbd or mysqld on PATH or in the system's own folders.  Raise
    `SpecError` naming what to install when there is none.
    """
    system = (*_path(host), *_SYSTEM)
    servers = list(dict.fromkeys(name for one in flavours().values() for name in one.programs))
    folders: Sequence[str] = system
    if server == "auto":
        missing = f'server = "auto": no {" or ".join(servers)} on {host.name}: {_INSTALL}'
        missing += ", or name the basedir of an unpacked one"
    else:
        folders = [f"{server}/{part}" for part in ("bin", "sbin", "libexec")]
        missing = f"server = {server!r}: no bin/{' or bin/'.join(servers)} there on {host.name}: "
        missing += "name the folder that holds the server's bin folder"
    found = _present(host, folders, servers)
    if not found:
        raise SpecError(missing)
    return _build(host, found[0], system)


def _build(host: Host, mysqld: Path, system: Sequence[str]) -> Build:
    real = Path(host.run(Action(("readlink", "-f", str(mysqld)))).check().stdout.decode().strip())
    refuse_foreign(host, real)
    done = _asked(host, real)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise SpecError(f"{real} does not run on {host.name}: {words}: install what it lacks")
    try:
        flavour, version, text = parse(done.stdout)
    except SpecError as error:
        raise SpecError(f"{real}: {error}") from error
    basedir = real.parent.parent
    client = _client(host, basedir, system)
    return Build(flavour, version, text, real, basedir, client, *_libraries(host, real))


def _client(host: Host, basedir: Path, system: Sequence[str]) -> Path:
    """Return the server's own client if it runs here, else the system's."""
    names = list(dict.fromkeys(name for one in flavours().values() for name in one.clients))
    for folders in ([str(basedir / "bin")], system):
        for path in _present(host, folders, names):
            if _runs(host, path):
                return path
    raise SpecError(f"no mariadb or mysql client runs on {host.name}: {_INSTALL}")


def _runs(host: Host, path: Path) -> bool:
    try:
        return _asked(host, path).returncode == 0
    except HostError:
        return False


def _asked(host: Host, program: Path, *options: str) -> Completed:
    """Return the output of a program with ``--version`` or `options`; as root it runs as nobody."""
    return _as_nobody(host, str(program), *(options or ("--version",)))


def _as_nobody(host: Host, *argv: str, stdin: bytes = b"") -> Completed:
    drop = _NOBODY.drop() if is_root(host) else ()
    command = (*drop, "env", "-i", PATH, "LC_ALL=C", *argv)
    return host.run(Action(command, stdin), timeout_s=_ASKED_S)


def _help(build: Build) -> tuple[str, ...]:
    """Return the options for help; some print no table where a folder compiled in does not exist.

    Those are a packaged 5.7's folder for files, and that of MariaDB 10.1's messages.
    """
    return ("--secure-file-priv=", f"--basedir={build.basedir}", "--verbose", "--help")


def option_names(host: Host, build: Build) -> frozenset[str]:
    """Return the options that a server program lists, spelled as variables; none if it fails.

    The program needs no data for that.  Options of plug-ins that it would load are not among them.
    """
    done = _asked(host, build.mysqld, "--no-defaults", *_help(build))
    return parse_options(done.stdout) if done.returncode == 0 else frozenset()


# A library that is part of a program leaves words in it: name to words.  MySQL 5.7 has "yaSSL" in
# its help, whatever it is built with; the names of that library's functions begin as here.
_OF_TLS = {"yaSSL": "5yaSSL", "wolfSSL": "wolfSSL_"}
_WORDS = _OF_TLS | {name: one.words for name, one in ALLOCATORS.items()}
_CONTAINED = 'f=$1; shift; for w; do ! LC_ALL=C grep -qaF -e "$w" "$f" || echo "$w"; done'


def _libraries(host: Host, mysqld: Path) -> tuple[str, str]:
    """Return the TLS library and the allocator that a program is linked against or contains."""
    done = _as_nobody(host, "ldd", str(mysqld))  # those of its libraries too
    lines = done.stdout.decode(errors="replace").splitlines()
    linked = [word for line in lines for word in line.split() if word.startswith("/")]
    find = ("sh", "-c", _CONTAINED, "find", str(mysqld), *_WORDS.values())
    words = host.run(Action(find)).stdout.decode().splitlines()
    contained = [name for name, those in _WORDS.items() if those in words]
    openssl = ["OpenSSL" for path in linked if "/libssl." in path]
    tls = [name for name in contained if name in _OF_TLS] + openssl
    allocators = [*named_in(linked), *(name for name in contained if name in ALLOCATORS)]
    return next(iter(tls), ""), next(iter(allocators), "glibc")


def read_options(host: Host, build: Build, text: str) -> bytes:
    """Return what a server program prints about an option file of this `text`; it needs no data.

    The file is a pipe, which is made by the user that reads it: values appear in no command line.
    """
    asked = ("--defaults-file=/dev/stdin", "--loose-log-error-verbosity=3", *_help(build))
    argv = ("sh", "-c", 'cat | "$@"', "read", str(build.mysqld), *asked)
    return _as_nobody(host, *argv, stdin=text.encode()).stderr


def parse_options(raw: bytes) -> frozenset[str]:
    """Return the first word of each row of the table of values that a server's help ends with."""
    _, _, table = raw.decode(errors="replace").partition("\n---------")
    rows = takewhile(str.strip, table.splitlines()[1:])
    return frozenset(row.split(maxsplit=1)[0].lower().replace("-", "_") for row in rows)


def refuse_foreign(host: Host, program: Path) -> None:
    """Raise `RefusedError` for a server program that another user could replace."""
    who = host.run(Action(("stat", "-c", "%u %a", "--", str(program)))).check().stdout.split()
    problem = distrust(host, program.parent)
    owner, mode = who[0].decode(), int(who[1], 8)
    me = host.run(Action(("id", "-u"))).check().stdout.decode().strip()
    if not problem and owner not in {"0", me}:
        problem = f"it belongs to user {owner}"
    if not problem and mode & 0o022:
        problem = "it can be written to by other users"
    if problem:
        raise RefusedError(
            f"{program}: not safe to run: {problem}; change its owner to root, or "
            "name another server"
        )


def _present(host: Host, folders: Iterable[str], names: Sequence[str]) -> list[Path]:
    """Return the executables that exist, in the order asked for."""
    wanted = [f"{folder}/{name}" for folder in dict.fromkeys(folders) for name in names]
    argv = ("find", *wanted, "-maxdepth", "0", "-executable")  # its exit code reports missing ones
    return [Path(line) for line in host.run(Action(argv)).stdout.decode().splitlines()]


def _path(host: Host) -> list[str]:
    done = host.run(Action(("printenv", "PATH")))
    return [part for part in done.stdout.decode().strip().split(":") if part.startswith("/")]
