"""One campaign a host at a time: a lock that dies with its process, or with its session."""

import fcntl
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from mydyno.host import Host, Running, Ssh
from mydyno.journal.state import state_folder
from mydyno.model import Action, HostError, RefusedError

_NAME = "lock"
_PATIENCE_S = 15  # the session of a mydyno that was killed ends in seconds
_HOLD = (
    'umask 077; folder=${1%/*}; mkdir -p "$folder" || exit; '
    '[ "$(stat -c %u:%a "$folder")" = "$(id -u):700" ] || { echo "somebody else: $folder is not '
    'ours alone"; exit 1; }; exec 9<>"$1" || exit; '
    'flock -w "$2" 9 || { cat "$1"; exit 1; }; '
    'echo "$3" >"$1"; echo held; exec sleep infinity'
)


@dataclass(slots=True)
class _RemoteLock:
    """The lock on a host over ssh, held by a command there: it lasts as long as the session."""

    host: Ssh
    holder: Running | None = None

    def take(self) -> None:
        """Take the lock where it is not ours; raise `RefusedError` where it is another's."""
        if self.holder is not None and self.holder.returncode() is None:
            return
        words = (str(self.host.run_folder() / _NAME / _NAME), str(_PATIENCE_S), _who())
        holder = self.host.start(Action(("sh", "-c", _HOLD, "hold", *words)))
        said = next(holder.lines(), b"").decode(errors="replace").strip()
        if said != "held":
            raise _refusal(self.host.name, said)
        self.holder = holder

    def leave(self) -> None:
        """Let go; a host that cannot be reached does so by itself."""
        with suppress(HostError):
            if self.holder is not None:
                self.holder.stop(grace_s=1.0)


@contextmanager
def host_lock(*hosts: Host) -> Iterator[Callable[[], None]]:
    """Hold the hosts; raise `RefusedError` where another campaign does.

    What is yielded takes the locks again that have ended with a session.
    """
    far = [_RemoteLock(host) for host in dict.fromkeys(hosts) if isinstance(host, Ssh)]

    def take() -> None:
        for one in far:
            one.take()

    with ExitStack() as stack:
        if len(far) < len(set(hosts)):
            stack.enter_context(_local_lock())
        for one in far:
            stack.callback(one.leave)
        take()
        yield take


@contextmanager
def _local_lock() -> Iterator[None]:
    with (state_folder("lock") / _NAME).open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise _refusal("this host", file.read().strip()) from error
        file.truncate(0)
        file.write(f"{_who()}\n")
        file.flush()
        yield


def _who() -> str:
    return f"process {os.getpid()} of {platform.node()}"


def _refusal(name: str, holder: str) -> RefusedError:
    told = holder or "another process"
    return RefusedError(f"{name} is measured by {told}; two campaigns at once would spoil both")
