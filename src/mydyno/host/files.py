"""Files between us and a host that does not see ours: carried there, and brought back."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mydyno.host.protocol import Host, Remote
from mydyno.model import Action, HostError

_PACKAGE = Path(__file__).parents[1]
_SCRIPT, _OPTIONS = ".lua", ".cnf"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # what we may find beside a load
_SHOWN, _MOST = 80, 100
_QUOTED = re.compile(r'"(/[^"]+)"')


def uploaded(host: Host, action: Action, *ours: Path) -> Action:
    """Return an action whose words name files of the host's.

    A word, or what stands in it behind a ``=``, that names a file or folder of this program's or
    below one of the folders `ours` is replaced by a copy in the host's session folder.  A script
    brings those beside and below it, an option file the files that it names in quotes.
    """
    if not isinstance(host, Remote):
        return action
    roots = (_PACKAGE, *ours)
    return Action(tuple(_there(host, word, roots) for word in action.argv), action.stdin)


def uploaded_program(host: Host, local: str) -> str:
    """Return where a program of ours may be started on the host, once it has been carried there."""
    if not isinstance(host, Remote):
        return local
    there = host.folder() / Path(local).name
    if host.run(Action(("test", "-x", str(there)))).returncode:
        host.push(Path(local), there)
    return str(there)


@contextmanager
def remote_work_folder(host: Host, folder: Path) -> Iterator[Path]:
    """Yield the folder on the host for files that belong into `folder` here; bring them at the end.

    Where the host sees our files it is `folder` itself.
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
    """Return the names of the files there; a far host chooses them, so each is looked at."""
    found = host.run(Action(("find", str(folder), "-type", "f", "-printf", "%f\\0"))).check()
    names = found.stdout.decode(errors="replace").split("\0")[:-1]
    for name in names:
        if not _NAME.fullmatch(name):
            raise HostError(
                f"{host.name}: named a file {name[:_SHOWN]!r}, which is none of ours; is this "
                "host what it should be?"
            )
    if len(names) > _MOST:
        raise HostError(
            f"{host.name}: named {len(names)} files, and a trial has fewer than {_MOST}"
        )
    return names


def _there(host: Host, word: str, roots: Sequence[Path]) -> str:
    """Return a word with the file or folder of ours in it replaced by its copy on the host."""
    name, equals, text = ("", "", word) if word.startswith("/") else word.partition("=")
    path = Path(text)
    if not path.is_absolute() or not any(path.is_relative_to(root) for root in roots):
        return word
    if path.is_dir():
        return f"{name}{equals}{_filled(host, path)}"
    return f"{name}{equals}{_copy(host, path, roots)}" if path.is_file() else word


def _copy(host: Host, path: Path, roots: Sequence[Path]) -> Path:
    """Return where a file has been carried, with all that it names or loads."""
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
    """Return a folder on the host with the files that are in `folder`."""
    there = _session(host) / folder.name
    host.run(Action(("mkdir", "-p", str(there)))).check()
    for path in sorted(folder.iterdir()):
        host.push(path, there / path.name)
    return there


def _scripts(host: Host, folder: Path) -> Path:
    """Return a folder on the host with all scripts below `folder`; they are carried once."""
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
        raise HostError(f"{host.name}: sees our files; nothing is carried there")
    return host.folder()
