"""The unprivileged user that a server started by root runs as."""

from dataclasses import dataclass
from pathlib import Path

from mydyno.host import Host
from mydyno.model import Action, SpecError

_CHOICES = ("mysql", "nobody")


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
        return ("setpriv", "--reuid", str(self.uid), "--regid", str(self.gid), "--clear-groups")

    def install(self, *arguments: str) -> tuple[str, ...]:
        """Return an `install` command whose result belongs to this user."""
        owner = ("-o", str(self.uid), "-g", str(self.gid)) if self.name else ()
        return ("install", *owner, *arguments)

    def own(self, folder: Path) -> tuple[str, ...]:
        """Return a command that makes a folder and all in it this user's."""
        return ("chown", "-hR", f"{self.uid}:{self.gid}", str(folder)) if self.name else ("true",)


def unprivileged(host: Host) -> Identity:
    """Return the user `mysql` if there is one, else `nobody`; for non-root, the user itself."""
    if _number(host, "-u") != 0:
        return Identity()
    for name in _CHOICES:
        uid = _number(host, "-u", name)
        if uid is not None:
            return Identity(name, uid, _number(host, "-g", name) or 0)
    raise SpecError(f"{host.name}: root may not run a server, and there is no user mysql or nobody")


def refuse_unreachable(host: Host, identity: Identity, path: Path) -> None:
    """Raise `SpecError` if that user cannot read the path because of a folder above it."""
    done = host.run(Action((*identity.drop(), "test", "-r", str(path))))
    if done.returncode:
        who = identity.name or "this user"
        raise SpecError(
            f"{path}: {who} cannot read it, and the server runs as {who}: "
            "use a folder that every user may pass through (not below /root)"
        )


def _number(host: Host, *arguments: str) -> int | None:
    done = host.run(Action(("id", *arguments)))
    return int(done.stdout) if done.returncode == 0 else None
