"""Folders on a host that nobody but root and us can change, so that paths below them hold.

Where every folder above a path belongs to root or to us and others cannot write to it, no link or
rename can come between a look at the path and its use.
"""

from pathlib import Path

from mydyno.host.protocol import Host
from mydyno.model import Action, HostError, RefusedError

# Who we are and who became root by sudo, and whose folders are root's own wish; then user, mode in
# hexadecimal and name of each path, not following links.  What is missing prints nothing.
_LOOK = """
echo "$(id -u) ${SUDO_UID:-0}"
for p; do stat --printf="%u %f %n\\0" -- "$p" 2>/dev/null; done; :
"""
_KIND, _FOLDER, _OTHERS, _STICKY = 0o170000, 0o040000, 0o022, 0o1000


def resolved(host: Host, path: Path) -> Path:
    """Return an absolute path without links; what does not exist yet is kept as it is written."""
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
    """Return what a folder is known by again: device and inode; raise `HostError` if missing."""
    done = host.run(Action(("stat", "-c", "%d %i %F", "--", str(path))))
    words = done.stdout.decode().strip().split(" ", 2)
    if done.returncode or words[-1] != "directory":
        raise HostError(f"{path}: not a folder on {host.name}")
    return {"device": words[0], "inode": words[1]}


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
    if problem or {k: facts.get(k) for k in found} != found or not found:
        reason = problem or "it is not the folder that was made there"
        raise RefusedError(f"{path}: not removed: {reason}; look at it, then remove it yourself")
    argv = ("rm", "-rf", "--one-file-system", "--", str(path))
    host.run(Action(argv), timeout_s=timeout_s).check()
    return True
