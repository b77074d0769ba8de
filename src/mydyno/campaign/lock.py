"""One campaign a host at a time: a lock that dies with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mydyno.model import RefusedError


def run_folder() -> Path:
    """Return the folder of locks and lab states: $MYDYNO_RUN_DIR, or /run/mydyno, or one's own."""
    if named := os.environ.get("MYDYNO_RUN_DIR"):
        return Path(named)
    if os.geteuid() == 0:
        return Path("/run/mydyno")
    return Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp") / f"mydyno-{os.geteuid()}"  # noqa: S108


@contextmanager
def host_lock() -> Iterator[None]:
    """Hold the host; raise `RefusedError` where another campaign does."""
    folder = run_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            raise RefusedError(
                f"this host is measured by {holder}; two campaigns at once would spoil both"
            ) from error
        file.truncate(0)
        file.write(f"process {os.getpid()}\n")
        file.flush()
        yield
