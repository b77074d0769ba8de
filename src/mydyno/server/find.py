"""Finds the server program of a spec, and a client that runs beside it."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from mydyno.host import Completed, Host, is_root
from mydyno.host.trusted import distrust
from mydyno.model import Action, HostError, RefusedError, SpecError
from mydyno.server.build import Build, parse
from mydyno.server.identity import Identity
from mydyno.server.launch import PATH

_SERVERS = ("mariadbd", "mysqld")
_CLIENTS = ("mariadb", "mysql")
_SYSTEM = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/usr/libexec")
_BINARY_FOLDERS = ("bin", "sbin", "libexec")
_NOBODY = Identity("nobody", 65534, 65534)
_ASKED_S = 30.0
_INSTALL = "apt-get install mariadb-server-core mariadb-client-core (or your MySQL packages)"


def find(host: Host, server: str) -> Build:
    """Return the build that a spec's `server` names: ``auto`` or a basedir.

    ``auto`` is the mariadbd or mysqld on PATH or in the system's own folders.  Raise
    `SpecError` naming what to install when there is none.
    """
    system = (*_path(host), *_SYSTEM)
    if server == "auto":
        mysqld = _first(host, system, _SERVERS)
        missing = f'server = "auto": no mariadbd or mysqld on {host.name}: {_INSTALL}'
        missing += ", or name the basedir of an unpacked one"
    else:
        mysqld = _first(host, [f"{server}/{part}" for part in _BINARY_FOLDERS], _SERVERS)
        missing = f"server = {server!r}: no bin/mariadbd or bin/mysqld there on {host.name}: "
        missing += "name the folder that holds the server's bin folder"
    if mysqld is None:
        raise SpecError(missing)
    return _build(host, mysqld, system)


def _build(host: Host, mysqld: Path, system: Sequence[str]) -> Build:
    real = Path(host.run(Action(("readlink", "-f", str(mysqld)))).check().stdout.decode().strip())
    _refuse_foreign(host, real)
    done = _asked(host, real)
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise SpecError(f"{real} does not run on {host.name}: {words}: install what it lacks")
    flavour, version, text = parse(done.stdout)
    basedir = real.parent.parent
    client = _client(host, basedir, system)
    return Build(flavour, version, text, real, basedir, client)


def _client(host: Host, basedir: Path, system: Sequence[str]) -> Path:
    """Return the server's own client if it runs here, else the system's."""
    for folders in ([str(basedir / "bin")], system):
        for path in _present(host, folders, _CLIENTS):
            if _runs(host, path):
                return path
    raise SpecError(f"no mariadb or mysql client runs on {host.name}: {_INSTALL}")


def _runs(host: Host, path: Path) -> bool:
    try:
        return _asked(host, path).returncode == 0
    except HostError:
        return False


def _asked(host: Host, program: Path) -> Completed:
    """Return the output of ``--version``; as root it is run as nobody."""
    drop = _NOBODY.drop() if is_root(host) else ()
    argv = (*drop, "env", "-i", PATH, "LC_ALL=C", str(program), "--version")
    return host.run(Action(argv), timeout_s=_ASKED_S)


def _refuse_foreign(host: Host, program: Path) -> None:
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


def _first(host: Host, folders: Iterable[str], names: Sequence[str]) -> Path | None:
    return next(iter(_present(host, folders, names)), None)


def _present(host: Host, folders: Iterable[str], names: Sequence[str]) -> list[Path]:
    """Return the executables that exist, in the order asked for."""
    wanted = [f"{folder}/{name}" for folder in dict.fromkeys(folders) for name in names]
    argv = ("find", *wanted, "-maxdepth", "0", "-executable")  # its code tells of missing ones
    return [Path(line) for line in host.run(Action(argv)).stdout.decode().splitlines()]


def _path(host: Host) -> list[str]:
    done = host.run(Action(("printenv", "PATH")))
    return [part for part in done.stdout.decode().strip().split(":") if part.startswith("/")]
