"""Preloading the buffer pool with the same pages for every trial, to shorten the warm-up."""

import random
import re
import time

from mydyno.host import Host
from mydyno.model import Action, HostError
from mydyno.server.accounts import DATABASE
from mydyno.server.instance import Instance

_LIST = "ib_buffer_pool"  # the name that every server looks for in its data folder
_MOST = 2_000_000  # pages that are listed: 32 GB of 16 KiB
_SEED = 1
_POLL_S = 0.1
_BEGINS_S = 3.0  # after the server answers
_RUNS = re.compile(r"^(loading buffer pool|loaded \d)")
_SPACES = ("INNODB_TABLESPACES", "INNODB_SYS_TABLESPACES")  # MySQL 8; MariaDB and MySQL before
_STATUS = "SHOW GLOBAL STATUS LIKE 'Innodb_buffer_pool_load_status'"


def page_list(instance: Instance) -> bytes:
    """Return every page of the load's tables as the running server's own dump would name them.

    They are in drawn order, so that what fits into a smaller pool is an even sample.
    """
    page = int(instance.query("SELECT @@innodb_page_size")[0][0])
    pages = [
        (int(space), number)
        for space, name in _spaces(instance)
        for number in range(_size(instance, name) // page)
    ]
    random.Random(_SEED).shuffle(pages)
    return "".join(f"{space},{number}\n" for space, number in pages[:_MOST]).encode()


def write(instance: Instance, pages: bytes) -> None:
    """Put a list of pages where the stopped server will look for it when it starts."""
    path = instance.place.data / _LIST
    # by the server's user: in its folder root would follow what it has put there
    argv = (*instance.identity.drop(), "dd", f"of={path}", "status=none")
    instance.host.run(Action(argv, pages)).check()


def load(instance: Instance, *, timeout_s: float = 900.0) -> None:
    """Return when the server has the listed pages in its pool, or as many as the pool holds.

    Where there is no list, or a treatment forbids it, the trial starts cold.
    """
    began_s = time.monotonic()
    while (spent_s := time.monotonic() - began_s) < timeout_s:
        status = next((row[1] for row in instance.query(_STATUS)), "").lower()
        waiting = (not status or "not started" in status) and spent_s < _BEGINS_S
        if "completed" in status or not (waiting or _RUNS.search(status)):
            return
        time.sleep(_POLL_S)
    raise HostError(
        f"loading the buffer pool timed out after {timeout_s:g} s; set protocol.preload = false"
    )


def _spaces(instance: Instance) -> list[tuple[str, ...]]:
    """Return the tablespaces of the load's tables: their numbers and names."""
    known = {
        row[0].upper()
        for row in instance.query(
            "SELECT TABLE_NAME FROM information_schema.TABLES "
            "WHERE TABLE_SCHEMA = 'information_schema'"
        )
    }
    view = next((name for name in _SPACES if name in known), "")
    if not view:
        return []
    return instance.query(
        f"SELECT SPACE, NAME FROM information_schema.{view} WHERE NAME LIKE '{DATABASE}/%'"  # noqa: S608 - our own names
    )


def _size(instance: Instance, name: str) -> int:
    host: Host = instance.host
    found = host.run(Action(("stat", "-c", "%s", str(instance.place.data / f"{name}.ibd"))))
    return int(found.stdout) if found.returncode == 0 else 0
