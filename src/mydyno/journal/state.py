"""Where the records lie that mydyno acts on: a folder that nobody else may write to.

Nothing in a run directory is acted on: whoever can write there could name a process to end or a
device to erase.
"""

import os
import stat
from pathlib import Path

from mydyno.model import RefusedError

_ROOTS = Path("/var/lib/mydyno")
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def state_folder(*below: str) -> Path:
    """Return the folder of the records, or one `below` it, made with mode 0700 where missing.

    It is ``/var/lib/mydyno`` for root and ``$XDG_STATE_HOME/mydyno`` (``~/.local/state/mydyno``)
    for others.  Raises `RefusedError` where it, or for root a folder above it, can be changed by
    another user.
    """
    folder = _place()
    above = folder.parent if os.geteuid() == 0 else Path(folder.anchor)
    if os.geteuid():
        folder.parent.mkdir(parents=True, exist_ok=True)
    for path in (*reversed(above.parents), above):
        _refuse_foreign(path)
    for name in ("", *below):
        folder = folder / name
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise RefusedError(f"{folder}: {error.strerror}; a folder is needed there") from error
        _refuse_foreign(folder, alone=True)
    return folder


def state_place() -> Path:
    """Return where the folder of the records is, whether or not it is there."""
    return _place()


def _place() -> Path:
    if os.geteuid() == 0:
        return _ROOTS
    home = os.environ.get("XDG_STATE_HOME") or str(Path("~/.local/state").expanduser())
    return Path(home) / "mydyno"


def _refuse_foreign(path: Path, *, alone: bool = False) -> None:
    """Raise `RefusedError` unless the path is a folder of root's or ours that others cannot write.

    `alone`: nobody else may even look into it.
    """
    found = path.lstat()
    problem = ""
    if not stat.S_ISDIR(found.st_mode):
        problem = "is not a folder"
    elif found.st_uid not in {0, os.geteuid()}:
        problem = f"belongs to user {found.st_uid}"
    elif found.st_mode & _OTHERS and not found.st_mode & stat.S_ISVTX:
        problem = "can be written to by other users"
    elif alone and found.st_mode & 0o077:
        problem = "can be read by other users"
    if problem:
        raise RefusedError(
            f"{path}: {problem}, so the records below it cannot be trusted; look at what is in "
            f"it, then give it to root with mode {'0700' if alone else '0755'}"
        )
