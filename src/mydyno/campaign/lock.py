"""One campaign a host at a time: a lock that dies with its process."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

from mydyno.lab import run_folder
from mydyno.model import RefusedError


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
