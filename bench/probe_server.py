"""A private MariaDB for the bench, and sysbench on it."""

import re
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mydyno.host import Local
from mydyno.loads.protocol import Target
from mydyno.loads.sysbench import connection_file
from mydyno.server import Instance, find, prepare
from probe_process import Fault, refuse_dead, started

# All data in memory and no sync at each commit: the processors are the limit, so that what a
# sampler takes from them shows in the throughput.
SETTINGS = """[mysqld]
innodb_buffer_pool_size = 512M
innodb_log_file_size = 1G
innodb_flush_log_at_trx_commit = 2
"""
TABLES, ROWS = 4, 50000
_LINE = re.compile(r"\[ (\d+)s \] .* tps: ([\d.]+) ")


@contextmanager
def private(folder: Path, server: str) -> Iterator[Instance]:
    """Yield a running private instance with sysbench's tables; it is gone when the block ends."""
    host = Local()
    home, data = folder / "server", folder / "data"
    instance = prepare(host, find(host, server), places=(home, data))
    instance.place.owned.write_text(SETTINGS)
    try:
        instance.initialise()
        instance.start()
        _fill(instance, folder)
        yield instance
    finally:
        instance.close()


def sysbench(instance: Instance, folder: Path, *words: str) -> list[str]:
    """Return a sysbench command on the instance."""
    end = instance.endpoint
    target = Target(
        work=folder,
        directory=folder,
        socket=end.socket,
        user=end.user,
        password_file=end.password_file,
        database=end.database,
    )
    file = connection_file(target)
    return ["sysbench", f"--config-file={file}", *words]


def _fill(instance: Instance, folder: Path) -> None:
    tables = (f"--tables={TABLES}", f"--table_size={ROWS}")
    argv = sysbench(instance, folder, "oltp_read_write", *tables, "prepare")
    done = subprocess.run(argv, capture_output=True, check=False, timeout=600)
    if done.returncode:
        raise Fault(f"sysbench prepare: {done.stdout.decode(errors='replace')[-400:]}")


@dataclass
class Load:
    """Sysbench while it runs: its process id and (monotonic time, transactions) each second."""

    pid: int
    log: Path
    seconds: list[tuple[float, float]] = field(default_factory=list)

    def between(self, begin: float, end: float) -> list[float]:
        """Return the transactions of each full second from `begin` to `end`."""
        return [tps for at, tps in self.seconds if begin <= at - 1.0 and at <= end]


@contextmanager
def load(instance: Instance, folder: Path, script: str, threads: int) -> Iterator[Load]:
    """Run sysbench until the block ends."""
    log = folder / "sysbench.out"
    log.write_bytes(b"")
    argv = [
        *sysbench(instance, folder, script, f"--tables={TABLES}"),
        f"--table_size={ROWS}",
        f"--threads={threads}",
        "--rand-type=uniform",
        "--time=0",
        "--report-interval=1",
        "run",
    ]
    with started(argv, log) as process:
        one = Load(process.pid, log)
        stop = threading.Event()
        reader = threading.Thread(target=_follow, args=(one, stop), daemon=True)
        reader.start()
        try:
            yield one
            refuse_dead(process, "sysbench", log)
        finally:
            stop.set()
            reader.join()


def _follow(one: Load, stop: threading.Event) -> None:
    """Note each line when it comes: its own second lies at most 50 ms before that."""
    with one.log.open() as text:
        rest = ""
        while not stop.wait(0.05):
            now = time.monotonic()
            *lines, rest = (rest + text.read()).split("\n")
            for line in lines:
                if found := _LINE.match(line):
                    one.seconds.append((now, float(found[2])))
