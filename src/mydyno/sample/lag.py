"""How far a replica was behind its server while a load ran, and how fast it followed."""

import json
from contextlib import suppress
from pathlib import Path
from statistics import fmean

from mydyno.model import Metric, Window

FILE = "replica.json"  # rows of seconds before the load's end, and seconds behind
_LEAST = 2  # looks


def metrics(folder: Path, window: Window) -> tuple[Metric, ...]:
    """Return the replica's mean lag and its speed over a window; nothing without a replica.

    The speed is the server's work of so many seconds that a second of the replica takes in: 1 for
    one that keeps up, 0.5 for one that falls behind by half a second in each.
    """
    length_s = window.end_s - window.start_s  # a load ends with its window
    with suppress(OSError, ValueError):
        rows = json.loads((folder / FILE).read_text(encoding="ascii"))
        inside = [(ago_s, behind_s) for ago_s, behind_s in rows if ago_s <= length_s]
        if len(inside) < _LEAST or inside[0][0] <= inside[-1][0]:
            return ()
        (first_s, began_s), (last_s, ended_s) = inside[0], inside[-1]
        speed = 1 - (ended_s - began_s) / (first_s - last_s)
        lag_s = fmean(behind_s for _, behind_s in inside)
        return Metric("replica_lag_s", lag_s, "s"), Metric("replica_speed_ratio", speed, "ratio")
    return ()
