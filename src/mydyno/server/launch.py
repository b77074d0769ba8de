"""How a private instance is launched: the layers' launch files, and the command they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.model import Action
from mydyno.server import sandbox
from mydyno.server.build import Build
from mydyno.server.identity import Identity
from mydyno.server.place import Place

_ENVIRONMENT_FILES = ("env", "alloc")  # the allocator's own lines win
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, slots=True)
class Launch:
    """What the launch files ask for: environment, resource limits and network, name to value."""

    environment: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    net: Mapping[str, str] = field(default_factory=dict)


def question(place: Place) -> Action:
    """Return the command that prints every line of every launch file with its file's name."""
    return Action(("grep", "-r", "-H", "", "--", str(place.launch)))


def parse(raw: bytes, folder: Path) -> Launch:
    """Return what the launch files in `folder` ask for; a missing file asks for nothing."""
    files: dict[str, dict[str, str]] = {}
    for line in raw.decode(errors="surrogateescape").splitlines():
        name, _, text = line.removeprefix(f"{folder}/").partition(":")
        key, equals, value = text.partition("=")
        if equals:
            files.setdefault(name, {})[key] = value
    environment: dict[str, str] = {}
    for name in _ENVIRONMENT_FILES:
        environment |= files.get(name, {})
    return Launch(environment, files.get("limits", {}), files.get("net", {}))


def command(
    build: Build,
    place: Place,
    identity: Identity,
    launch: Launch,
    hidden: Sequence[Path] | None = None,
) -> Action:
    """Return the command that becomes the server.

    Limits come first, while we may still raise them; then the drop to an unprivileged user and
    the wish to die with the thread that starts us (prctl PR_SET_PDEATHSIG, so a mydyno killed
    by SIGKILL leaves no server); then an environment of its own, so that a preload meets the
    server only and the caller's variables do not reach it.  With folders to be `hidden` it runs
    where it can write to its own only.
    """
    limits = tuple(f"--{name}={value}:{value}" for name, value in sorted(launch.limits.items()))
    drop = identity.drop() or ("setpriv",)
    given = tuple(f"{name}={value}" for name, value in sorted(launch.environment.items()))
    clean = ("env", "-i", PATH, f"HOME={place.home}", "LC_ALL=C", *given)
    server = (str(build.mysqld), f"--defaults-file={place.options}")
    argv = (
        *(("prlimit", *limits) if limits else ()),
        *(*drop, "--pdeathsig", "KILL"),
        *clean,
        *server,
    )
    if hidden is not None:
        own = (place.data, place.run, place.tmp)
        argv = sandbox.wrapped(argv, own, hidden, root=bool(identity.name))
    return Action(argv)
