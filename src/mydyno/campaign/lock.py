"""One campaign per host: a lock that ends with its process, or with its ssh session."""

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
_PATIENCE_S = 15  # the session of a killed mydyno ends within seconds
_HOLD = (
    'umask 077; folder=${1%/*}; mkdir -p "$folder" || exit; '
    '[ "$(stat -c %u:%a "$folder")" = "$(id -u):700" ] || { echo "another user: $folder is '
    'accessible to others"; exit 1; }; exec 9<>"$1" || exit; '
    'flock -w "$2" 9 || { cat "$1"; exit 1; }; '
    'echo "$3" >"$1"; echo held; exec sleep infinity'
)


@dataclass(slots=True)
class _RemoteLock:
    """The lock on a host over ssh, held by a command there as long as the session lasts."""

    host: Ssh
    holder: Running | None = None

    def take(self) -> None:
        """Take the lock unless it is held already; raise `RefusedError` if another holds it."""
        if self.holder is not None and self.holder.returncode() is None:
            return
        words = (str(self.host.run_folder() / _NAME / _NAME), str(_PATIENCE_S), _who())
        holder = self.host.start(Action(("sh", "-c", _HOLD, "hold", *words)))
        reply = next(holder.lines(), b"").decode(errors="replace").strip()
        if reply != "held":
            raise _refusal(self.host.name, reply)
        self.holder = holder

    def leave(self) -> None:
        """Release the lock; a host that cannot be reached releases it itself."""
        with suppress(HostError):
            if self.holder is not None:
                self.holder.stop(grace_s=1.0)


@contextmanager
def host_lock(*hosts: Host) -> Iterator[Callable[[], None]]:
    """Lock the hosts; raise `RefusedError` where another campaign holds one.

    The function yielded takes the locks again that ended with their session.
    """
    remote = [_RemoteLock(host) for host in dict.fromkeys(hosts) if isinstance(host, Ssh)]

    def take() -> None:
        for one in remote:
            one.take()

    with ExitStack() as stack:
        if len(remote) < len(set(hosts)):
            stack.enter_context(_local_lock())
        for one in remote:
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
    owner = holder or "another process"
    return RefusedError(
        f"{name}: locked by a campaign of {owner}; wait until it ends, as two campaigns at once "
        "would disturb each other"
    )
