"""Steps of a load that the integration tests share."""

import time
from pathlib import Path

from mydyno.host import Local

HOST = Local()


def prepare(cell, target):
    for action in cell.prepare(target):
        HOST.run(action, timeout_s=900).check()


def live(cell, target, count, seed=7):
    """Return the first `count` intervals, each with the wall time of its coming."""
    running = HOST.start(cell.run(target, seed, {}))
    began, found = time.monotonic(), []
    intervals = cell.parse(running.lines())
    try:
        for interval in intervals:
            found.append((time.monotonic() - began, interval))
            if len(found) == count:
                break
    finally:
        running.stop()
    return found


def seen_by_others(pid):
    for name in ("cmdline", "environ"):
        try:
            yield Path(f"/proc/{pid}/{name}").read_bytes()
        except OSError:
            continue
