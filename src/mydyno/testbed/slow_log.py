"""The slow log of a private server: one for each trial, packed, with its digest by class.

It is written where a treatment sets ``mysqld.slow_query_log``.
"""

from pathlib import Path

from mydyno.host import Local
from mydyno.host.files import size_of
from mydyno.journal.register import STATEMENTS
from mydyno.model import Action
from mydyno.sample import probe_binary
from mydyno.server import Instance
from mydyno.server.client import LOAD_USER
from mydyno.stack.known import normalise
from mydyno.stack.protocol import StackSettings

SAVED = "slow.log.gz"
MOST = 1 << 30  # bytes of a log that are kept, the first ones
_CLASSES = 50
_PACK_S = 600.0
# the file is the server user's: read with that user's rights, written with ours
_PACK = 'out=$1; shift; "$@" >"$out"'
_READ = 'tail -c "+$1" -- "$2" | head -c "$3" | gzip -1'


def wanted(settings: StackSettings) -> bool:
    """Return whether a treatment switches the slow log on."""
    return normalise(settings.of("mysqld").get("slow_query_log", "OFF")) == "1"


def begins(instance: Instance, settings: StackSettings) -> int | None:
    """Return where a trial begins in the slow log, None where its treatment has none."""
    return size_of(instance.host, instance.place.slow_log) if wanted(settings) else None


def save(instance: Instance, folder: Path, since: int) -> None:
    """Save what was logged from `since` on, and the digest of the load's statements, to a folder.

    Nothing is saved where nothing was logged, and no digest where `mydyno-probe` is not built.
    """
    host, place = instance.host, instance.place
    if size_of(host, place.slow_log) <= since:
        return
    packed = place.home / SAVED
    words = ("read", str(since + 1), str(place.slow_log), str(MOST))
    reading = (*instance.identity.drop(), "sh", "-c", _READ, *words)
    argv = ("sh", "-c", _PACK, "pack", str(packed), *reading)
    host.run(Action(argv), timeout_s=_PACK_S).check()
    host.pull(packed, folder / SAVED)
    host.run(Action(("rm", "-f", str(packed)))).check()
    if not (probe := probe_binary()):
        return
    argv = (probe, "digest", "--json", "--limit", str(_CLASSES), "--user", LOAD_USER)
    done = Local().run(Action((*argv, str(folder / SAVED))), timeout_s=_PACK_S)
    if done.returncode == 0:
        (folder / STATEMENTS).write_bytes(done.stdout)
