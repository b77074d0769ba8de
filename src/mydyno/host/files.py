"""Files on a host: copies for a command, and folders that only root can have written."""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from mydyno.host.protocol import Host, Remote
from mydyno.model import Action, HostError, RefusedError

_PACKAGE = Path(__file__).parents[1]
_SCRIPT, _OPTIONS = ".lua", ".cnf"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # file names accepted from a remote host
_SHOWN, _MOST = 80, 100
_QUOTED = re.compile(r'"(/[^"]+)"')


def uploaded(host: Host, action: Action, *ours: Path) -> Action:
    """Upload the local files that an action names; return the action with their remote paths.

    An argument, or its part after ``=``, that names a file or folder of this package or below one
    of the folders `ours` is replaced by a copy in the host's session folder.  With a script all
    scripts of its folder are uploaded, with an option file the files that it names in quotes.
    """
    if not isinstance(host, Remote):
        return action
    roots = (_PACKAGE, *ours)
    return Action(tuple(_there(host, word, roots) for word in action.argv), action.stdin)


def size_of(host: Host, path: Path) -> int:
    """Return the size of a file in bytes, 0 where there is none."""
    done = host.run(Action(("stat", "-c", "%s", str(path))))
    return int(done.stdout) if done.returncode == 0 else 0


def packaged_program(name: str) -> str:
    """Return a program of ours: in the package, beside this Python, on PATH; else ``""``."""
    places = (_PACKAGE / "bin" / name, Path(sys.executable).parent / name)
    found = next((str(path) for path in places if path.is_file()), "")
    return found or shutil.which(name) or ""


def uploaded_program(host: Host, local: str) -> str:
    """Return the path of a local program on the host, uploaded if necessary."""
    if not isinstance(host, Remote):
        return local
    there = host.folder() / Path(local).name
    if host.run(Action(("test", "-x", str(there)))).returncode:
        host.push(Path(local), there)
    return str(there)


@contextmanager
def remote_work_folder(host: Host, folder: Path) -> Iterator[Path]:
    """Yield a remote folder whose files are downloaded into the local `folder` at the end.

    On a host that shares the local filesystem it is `folder` itself.
    """
    if not isinstance(host, Remote):
        yield folder
        return
    made = host.run(Action(("mktemp", "-d", "-p", str(host.folder())))).check().stdout
    there = Path(made.decode().strip())
    try:
        yield there
    finally:
        for name in _names(host, there):
            host.pull(there / name, folder / name)
        host.run(Action(("rm", "-rf", "--", str(there))))


def _names(host: Host, folder: Path) -> Sequence[str]:
    """Return the names of the files there, validated because the remote host chooses them."""
    found = host.run(Action(("find", str(folder), "-type", "f", "-printf", "%f\\0"))).check()
    names = found.stdout.decode(errors="replace").split("\0")[:-1]
    for name in names:
        if not _NAME.fullmatch(name):
            raise HostError(
                f"{host.name}: returned an unexpected file name {name[:_SHOWN]!r}; check that this "
                "is the intended host"
            )
    if len(names) > _MOST:
        raise HostError(
            f"{host.name}: returned {len(names)} files, but a trial has at most {_MOST}; check "
            "that this is the intended host"
        )
    return names


def _there(host: Host, word: str, roots: Sequence[Path]) -> str:
    """Return an argument with a local file or folder replaced by its copy on the host."""
    name, equals, text = ("", "", word) if word.startswith("/") else word.partition("=")
    path = Path(text)
    if not path.is_absolute() or not any(path.is_relative_to(root) for root in roots):
        return word
    if path.is_dir():
        return f"{name}{equals}{_filled(host, path)}"
    return f"{name}{equals}{_copy(host, path, roots)}" if path.is_file() else word


def _copy(host: Host, path: Path, roots: Sequence[Path]) -> Path:
    """Upload a file with the files that it names or loads; return its remote path."""
    if path.suffix == _SCRIPT:
        return _scripts(host, path.parent) / path.name
    there = _session(host) / path.name
    if path.suffix == _OPTIONS:
        text = _QUOTED.sub(lambda found: f'"{_there(host, found[1], roots)}"', path.read_text())
        install = ("install", "-m", "600", "/dev/stdin", str(there))
        host.run(Action(install, text.encode())).check()
    else:
        host.push(path, there)
    return there


def _filled(host: Host, folder: Path) -> Path:
    """Upload a folder; return its remote path."""
    there = _session(host) / folder.name
    host.run(Action(("mkdir", "-p", str(there)))).check()
    for path in sorted(folder.iterdir()):
        host.push(path, there / path.name)
    return there


def _scripts(host: Host, folder: Path) -> Path:
    """Upload all scripts below `folder`, once; return the remote folder."""
    there = _session(host) / folder.name
    if host.run(Action(("test", "-d", str(there)))).returncode == 0:
        return there
    part = there.with_suffix(".part")
    for path in sorted(folder.rglob(f"*{_SCRIPT}")):
        copy = part / path.relative_to(folder)
        host.run(Action(("mkdir", "-p", str(copy.parent)))).check()
        host.push(path, copy)
    host.run(Action(("mv", "-T", str(part), str(there)))).check()
    return there


def _session(host: Host) -> Path:
    if not isinstance(host, Remote):
        raise HostError(f"{host.name}: not a remote host; nothing to upload")
    return host.folder()


# Who we are and who became root by sudo, and whose folders are root's own wish; then user, mode in
# hexadecimal and name of each path, not following links.  What is missing prints nothing.
_LOOK = """
echo "$(id -u) ${SUDO_UID:-0}"
for p; do stat --printf="%u %f %n\\0" -- "$p" 2>/dev/null; done; :
"""
_KIND, _FOLDER, _OTHERS, _STICKY = 0o170000, 0o040000, 0o022, 0o1000


def resolved(host: Host, path: Path) -> Path:
    """Return an absolute path without links; what does not exist yet stays as it is written."""
    done = host.run(Action(("realpath", "-m", "--", str(path)))).check()
    return Path(done.stdout.decode(errors="surrogateescape").removesuffix("\n"))


def distrust(host: Host, path: Path, *, shared: bool = False) -> str:
    """Return why somebody else could change what a path means, or ``""`` where nobody can.

    The folders above it are looked at, and the path itself where it exists; `shared` allows that
    others make entries of their own in it, as in /tmp.  It must be absolute and without links
    (`resolved`).
    """
    ways = [*reversed(path.parents), path]
    done = host.run(Action(("sh", "-c", _LOOK, "look", *map(str, ways)))).check()
    me, _, rest = done.stdout.decode(errors="surrogateescape").partition("\n")
    for line in filter(None, rest.split("\0")):
        user, mode_text, name = line.split(" ", 2)
        mode = int(mode_text, 16)
        if mode & _KIND != _FOLDER:
            return f"{name} is not a folder"
        if user not in {"0", *me.split()}:
            return f"{name} belongs to user {user}"
        above = shared or name != str(path)
        if mode & _OTHERS and not (above and mode & _STICKY):
            return f"{name} can be written to by other users"
    return ""


def problem_for_root(host: Host, path: Path) -> str:
    """Return why root should not write to a path, or ``""``, always so for other users."""
    return distrust(host, resolved(host, path)) if os.geteuid() == 0 else ""


def make(host: Host, path: Path, mode: str, *, owner: str = "") -> None:
    """Make one new folder in a trusted one; raise `RefusedError` where there is something.

    `owner` is ``uid:gid``, ours where it is empty.
    """
    if problem := distrust(host, path.parent, shared=True):
        raise RefusedError(f"{path}: cannot be made safely: {problem}; choose another directory")
    done = host.run(Action(("mkdir", "-m", mode, "--", str(path))))
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip()
        raise RefusedError(f"{path}: {words}; what is there is not ours: remove or rename it")
    if owner:
        host.run(Action(("chown", "-h", owner, "--", str(path)))).check()


def make_home(host: Host, home: Path) -> dict[str, str]:
    """Make a lab's folder, and the one above it where there is none; return its identity.

    Raises `RefusedError` where there is something.
    """
    if host.run(Action(("test", "-e", str(home.parent)))).returncode:
        make(host, home.parent, "711")
    make(host, home, "700")
    return identity(host, home)


def identity(host: Host, path: Path) -> dict[str, str]:
    """Return what a folder is known by again; raise `HostError` if it is missing."""
    # the mode as a number: its words would be in the language of whoever looks
    script = 'cat /proc/sys/kernel/random/boot_id && stat -c "%d %i %f" -- "$1"'
    done = host.run(Action(("sh", "-c", script, "identity", str(path))))
    words = done.stdout.decode().split()
    if done.returncode or int(words[-1], 16) & _KIND != _FOLDER:
        raise HostError(f"{path}: not a folder on {host.name}")
    return {"boot": words[0], "device": words[1], "inode": words[2]}


def is_same(now: Mapping[str, str], made: Mapping[str, str]) -> bool:
    """Return whether a folder is the one that was recorded: a boot gives devices other numbers."""
    booted = "boot" in made and made["boot"] != now["boot"]
    return all(now[key] == made.get(key) for key in (("inode",) if booted else ("device", "inode")))


def remove(host: Host, path: Path, facts: dict[str, str], *, timeout_s: float) -> bool:
    """Remove a folder of ours with all in it; return whether it was there.

    One whose making was only announced, without `facts`, is removed if it is empty.  Raises
    `RefusedError` where another folder is in its place, or others can change what is.
    """
    if host.run(Action(("test", "-e", str(path), "-o", "-L", str(path)))).returncode:
        return False
    if not facts:
        return host.run(Action(("rmdir", "--", str(path)))).returncode == 0
    try:
        found = identity(host, path)
    except HostError:
        found = {}
    problem = distrust(host, path)
    if problem or not found or not is_same(found, facts):
        reason = problem or "it is not the folder that was made there"
        raise RefusedError(f"{path}: not removed: {reason}; look at it, then remove it yourself")
    argv = ("rm", "-rf", "--one-file-system", "--", str(path))
    host.run(Action(argv), timeout_s=timeout_s).check()
    return True
