"""A private server for the TPC-C bench, over loopback TCP, as all tools can reach it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mydyno.host import Local
from mydyno.loads import Target
from mydyno.server import Instance, find, prepare
from mydyno.testbed.server_runner import target_of

# Two warehouses fit into memory, and no commit waits for a disk: tools and server are compared,
# not the disk under them.
SETTINGS = """[mysqld]
innodb_buffer_pool_size = 1G
innodb_log_file_size = 512M
innodb_flush_log_at_trx_commit = 2
max_connections = 200
"""


@contextmanager
def private(folder: Path, server: str) -> Iterator[tuple[Instance, Target]]:
    """Yield a running private instance and its address; it is gone when the block ends."""
    host = Local()
    instance = prepare(host, find(host, server), places=(folder / "server", folder / "data"))
    instance.place.owned.write_text(SETTINGS)
    (instance.place.launch / "net").write_text("transport=tcp\n")
    try:
        instance.initialise()
        instance.start()
        yield instance, target_of(instance, folder, folder)
    finally:
        instance.close()
