"""A trial's sample read again: its series in the time of the load, and what the window used."""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from mydyno.measure.derive import series
from mydyno.measure.probe_file import ProbeFileError, read
from mydyno.measure.sampler import FILE, START, WHERE
from mydyno.measure.where import Where
from mydyno.model import Metric, Series, Window

_BUSY = ("cpu.user", "cpu.system", "cpu.irq")
_STEAL = ("cpu.steal",)
_ALL = (*_BUSY, *_STEAL, "cpu.iowait", "cpu.idle")
_LEAST_S = 1e-3  # what cannot be told apart from a load's very beginning


def sampled_series(folder: Path) -> tuple[Series, ...]:
    """Return a trial's series in the time of its load; none where it was not sampled.

    Raises `ProbeFileError` for a file that is not one of the sampler's.
    """
    path, start = folder / FILE, folder / START
    if not path.exists() or not start.exists():
        return ()
    try:
        where = msgspec.json.decode((folder / WHERE).read_bytes(), type=Where)
        origin_ns = int(start.read_text(encoding="ascii"))
    except (ValueError, OSError) as error:
        raise ProbeFileError(f"{folder}: {error}") from error
    sampled = read(path)
    found = series(sampled, where, (origin_ns - sampled.head.mono_ns) * 1e-9)
    return tuple(since for one in found if (since := _since_start(one)).values)


def _since_start(one: Series) -> Series:
    """Return a series without what was before the load."""
    first = next((i for i, t_s in enumerate(one.t_s) if t_s >= _LEAST_S), len(one.t_s))
    return Series(one.name, one.unit, one.t_s[first:], one.values[first:])


def used(found: Sequence[Series], window: Window) -> tuple[Metric, ...]:
    """Return what was used of the processors in a window, and what the sampler itself took.

    `cpu_busy_ratio` and `cpu_steal_ratio` are shares of all processors' time;
    `probe_cpu_cores` is in cores.  What was not sampled is left out.
    """
    spent = {s.name: _sum(s, window) for s in found if s.name in {*_ALL, "probe.cpu"}}
    total = sum(spent.get(name, 0.0) for name in _ALL)
    if not total:
        return ()
    ticks = sum(window.holds(t_s) for s in found if s.name == "cpu.idle" for t_s in s.t_s)
    own = [Metric("probe_cpu_cores", spent["probe.cpu"] / ticks, "cores")] if ticks else []
    return (
        Metric("cpu_busy_ratio", sum(spent.get(n, 0.0) for n in _BUSY) / total, "ratio"),
        Metric("cpu_steal_ratio", sum(spent.get(n, 0.0) for n in _STEAL) / total, "ratio"),
        *own,
    )


def _sum(one: Series, window: Window) -> float:
    return sum(v for t_s, v in zip(one.t_s, one.values, strict=True) if window.holds(t_s))
