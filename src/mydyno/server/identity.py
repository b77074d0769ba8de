"""The unprivileged user that a server started by root runs as: one that nobody else has."""

import random
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host, is_root
from mydyno.journal.records import Made, Records, Removed, things
from mydyno.model import Action, JournalError, SpecError

KIND = "user"
# What systemd hands out to services without a user of their own; no package and no person gets one.
_RANGE = range(61184, 65520)
_FEWER = ("--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
_TAKEN = "getent passwd; getent group; stat -c 'x:x:%u' /proc/[0-9]* 2>/dev/null; :"


@dataclass(frozen=True, slots=True)
class Identity:
    """A user to drop to; without a `name` the server runs as who we are."""

    name: str = ""
    uid: int = -1
    gid: int = -1

    def drop(self) -> tuple[str, ...]:
        """Return the arguments before a command that is to run as this user."""
        if not self.name:
            return ()
        user = ("--reuid", str(self.uid), "--regid", str(self.gid), "--clear-groups")
        return ("setpriv", *user, *_FEWER)

    @property
    def owner(self) -> str:
        """Return the user and its group as `chown` takes them, or ``""``."""
        return f"{self.uid}:{self.gid}" if self.name else ""

    @property
    def group(self) -> str:
        """Return root with the user's group, for what the user may read and not change."""
        return f"0:{self.gid}" if self.name else ""


def unprivileged(host: Host, records: Records) -> Identity:
    """Return the campaign's own user, recorded so that it stays the same; for non-root, ourselves.

    It has a number only: no account is made, and no process and no file has it yet.
    """
    if not is_root(host):
        return Identity()
    for made in things(records.entries(), KIND):
        return _numbered(int(made.place))
    listed = host.run(Action(("sh", "-c", _TAKEN))).stdout.decode(errors="replace")
    taken = {line.split(":")[2] for line in listed.splitlines() if line.count(":") > 1}
    free = [uid for uid in _RANGE if str(uid) not in taken]
    if not free:
        raise SpecError(f"{host.name}: no user from {_RANGE[0]} to {_RANGE[-1]} is free")
    uid = random.choice(free)
    records.add(Made(KIND, str(uid)))
    return _numbered(uid)


def forget(records: Records) -> None:
    """Release a campaign's user, when nothing of the campaign is left."""
    for made in things(records.entries(), KIND):
        with suppress(JournalError):  # it is gone, recorded or not
            records.add(Removed(KIND, made.place))


def refuse_unreachable(host: Host, identity: Identity, path: Path) -> None:
    """Raise `SpecError` if that user cannot pass to the path because of a folder above it."""
    done = host.run(Action((*identity.drop(), "test", "-x", str(path))))
    if done.returncode:
        who = f"the server's user ({identity.uid})" if identity.name else "this user"
        raise SpecError(
            f"{path}: {who} cannot reach it: use a folder that every user may pass through "
            "(not below /root)"
        )


def _numbered(uid: int) -> Identity:
    return Identity(f"mydyno-{uid}", uid, uid)
