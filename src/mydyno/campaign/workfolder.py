"""The work folder of a campaign: inaccessible to other users, recorded, removed at the end.

It contains servers, data sets and lab disks.  It is in the run directory if the server's user can
reach it there, else in /var/tmp under a random name.
"""

import secrets
from contextlib import suppress
from pathlib import Path

from mydyno.host import Host
from mydyno.host.trusted import distrust, identity, make, remove
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.model import Action, HostError, JournalError, MydynoError, RefusedError

REMOTE_ROOT = Path("/var/tmp")  # noqa: S108 - a new folder there; it survives a reboot
FOLDER, LOCAL_FOLDER = "folder", "local folder"
_LONG_S = 600.0
_PASSABLE = "711"  # the server runs as a user of its own


def open_work(host: Host, path: Path, records: Records, *, kind: str = FOLDER) -> Path:
    """Return the campaign's work folder: the recorded one where it is still there, or a new one.

    Raises `RefusedError` where `path` is taken, or not safe.
    """
    for made in things(records.entries(), kind):
        there = Path(made.place)
        if made.facts and _is(host, there, made.facts):
            return there
        _forget(host, there, made, records)
    records.add(Made(kind, str(path)))
    make(host, path, _PASSABLE)
    records.add(Made(kind, str(path), identity(host, path)))
    return path


def random_folder() -> Path:
    """Return a path in /var/tmp with a random name."""
    return REMOTE_ROOT / f"mydyno-{secrets.token_hex(8)}"


def remove_work(host: Host, records: Records, *, kind: str = FOLDER) -> tuple[list[str], list[str]]:
    """Remove the recorded folders; return what was removed, and what could not be, with reasons."""
    removed: list[str] = []
    failed: list[str] = []
    for made in things(records.entries(), kind):
        try:
            if remove(host, Path(made.place), made.facts, timeout_s=_LONG_S):
                removed.append(made.place)
        except MydynoError as error:
            failed.append(str(error))
            continue
        with suppress(JournalError):  # it is removed even if that is not recorded
            records.add(Removed(kind, made.place))
    return removed, failed


def _is(host: Host, path: Path, facts: dict[str, str]) -> bool:
    try:
        return not distrust(host, path) and identity(host, path) == facts
    except HostError:
        return False


def _forget(host: Host, path: Path, made: Made, records: Records) -> None:
    """Skip a recorded folder that is gone; raise `RefusedError` if something else is there."""
    if host.run(Action(("rmdir", "--", str(path)))).returncode and (
        host.run(Action(("test", "-e", str(path), "-o", "-L", str(path)))).returncode == 0
    ):
        raise RefusedError(
            f"{path}: not the work folder that this campaign made there; inspect it, remove "
            "it, then run again"
        )
    records.add(Removed(made.kind, made.place))
