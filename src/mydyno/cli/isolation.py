"""Isolation of root: only code of our own environment, and programs that only root can change.

A script written by `pip` honours PYTHONPATH and a user's packages; as root it is run again in
isolated mode.
"""

import os
import stat
import sys
from pathlib import Path

_NAME = "mydyno"
_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def isolate() -> None:
    """As root, restart in isolated mode, and search for programs in safe folders only."""
    if os.geteuid():
        return
    script = Path(sys.argv[0])
    if script.name == _NAME and script.is_file() and not sys.flags.isolated:
        os.execv(sys.executable, [sys.executable, "-I", *sys.argv])  # noqa: S606 - ourselves
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    os.environ["PATH"] = os.pathsep.join(filter(_safe, dict.fromkeys(folders)))


def _safe(folder: str) -> bool:
    """Return whether only root can put a program into a folder."""
    path = Path(folder)
    if not path.is_absolute():
        return False
    try:
        real = path.resolve(strict=True)
        ways = [p.stat() for p in (*real.parents, real)]
    except (OSError, RuntimeError):
        return False
    return all(_root_only(way) for way in ways[:-1]) and _root_only(ways[-1], sticky=False)


def _root_only(found: os.stat_result, *, sticky: bool = True) -> bool:
    protected = sticky and found.st_mode & stat.S_ISVTX
    return found.st_uid == 0 and not (found.st_mode & _OTHERS and not protected)
