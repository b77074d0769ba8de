"""The sampler's ticks as they come, each with what it means beside the one before it."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mydyno.model import HostError
from mydyno.sample.derive import ALL, CPU, DISK, HOST, NET, SERVER, Table, levels, rates, tracks
from mydyno.sample.probe_file import Reader, Sampled, SampledTick, sampled

_PAUSE_S = 0.1
_RETAINED = 3  # ticks: a server may answer one later than the host
_MORE: Table = {  # what a person looks at first, and a trial's report has no chart of
    "cpu.running": ("", levels("cpu.running")),
    "cpu.context_switches": ("/s", rates("cpu.context_switches")),
    "memory.total": ("B", levels("memory.total")),
    "memory.available": ("B", levels("memory.available")),
}
_SERVER: Table = {"queries": ("/s", rates("status.queries")), **SERVER}

Values = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Moment:
    """One tick: its time, the host's series, and those of each disk and interface used so far."""

    wall_s: float
    seq: int
    values: Values
    disks: Mapping[str, Values]
    interfaces: Mapping[str, Values]


def moments(
    path: Path, running: Callable[[], bool], grown: Callable[[int], bytes]
) -> Iterator[Moment]:
    """Yield each tick of a growing file from the second on, until its writer has ended.

    `grown` returns what the file holds from a byte on.  Raises `HostError` where the writer ends
    without having written anything.
    """
    reader = Reader(path.name)
    rows: deque[SampledTick] = deque(maxlen=_RETAINED)
    seen: set[str] = set()
    at = 0
    alive = True
    while alive:
        alive = running()  # asked before reading, so that what it wrote last is read too
        raw = grown(at)
        at += len(raw)
        for row in reader.take(raw):
            rows.append(row)
            if len(rows) > 1:
                yield _moment(sampled(reader, rows), seen)
        if alive and not raw:
            time.sleep(_PAUSE_S)
    if reader.head is None:
        raise HostError("the sampler ended before it had begun")


def _moment(few: Sampled, seen: set[str]) -> Moment:
    tables = ((CPU, ALL), (HOST, ""), (_MORE, ""))
    values = {name: value for table, of in tables for name, value in _last(table, few, of)}
    return Moment(
        wall_s=float(few.wall_s[-1]),
        seq=int(few.seqs[-1]),
        values=values | dict(_last(_SERVER, few, "", _RETAINED)),
        disks=_devices(DISK, few, few.instances("disk.reads"), seen),
        interfaces=_devices(NET, few, few.instances("net.rx_bytes"), seen),
    )


def _last(table: Table, few: Sampled, of: str, ticks: int = 1) -> Iterator[tuple[str, float]]:
    """Yield each track's last value, if that is not older than so many ticks."""
    for name, _, track in tracks(table, few, of):
        known = track.values[-ticks:][~np.isnan(track.values[-ticks:])]
        if len(known):
            yield name, float(known[-1])


def _devices(
    table: Table, few: Sampled, devices: Sequence[str], seen: set[str]
) -> Mapping[str, Values]:
    """Return the values of each device that does something, or did before."""
    found = {device: dict(_last(table, few, device)) for device in devices}
    seen |= {device for device, values in found.items() if any(v > 0 for v in values.values())}
    return {
        device: {name.partition(".")[2]: value for name, value in values.items()}
        for device, values in found.items()
        if device in seen
    }
