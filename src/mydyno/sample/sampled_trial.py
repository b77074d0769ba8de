"""A trial's sample read again: its series in the time of the load, and what the window used."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from mydyno.model import Metric, Series, Window
from mydyno.sample.derive import series
from mydyno.sample.probe_file import ProbeFileError, read
from mydyno.sample.sampler import FILE, START, WALL, WHERE, Where

_BUSY = ("cpu.user", "cpu.system", "cpu.irq")
_STEAL = ("cpu.steal",)
_ALL = (*_BUSY, *_STEAL, "cpu.iowait", "cpu.idle")
_LOAD = "process.load.cpu"
_OURS = (_LOAD, "process.mysqld.cpu", "probe.cpu")
_LEAST_S = 1e-3  # what cannot be distinguished from a load's very beginning


def sampled_series(folder: Path) -> tuple[Series, ...]:
    """Return a trial's series in the time of its load; none where it was not sampled.

    Raises `ProbeFileError` for a file that is not one of the sampler's.
    """
    path, start = folder / FILE, folder / START
    if not path.exists() or not start.exists():
        return ()
    try:
        where = msgspec.json.decode((folder / WHERE).read_bytes(), type=Where)
        origin_ns, _, clock = start.read_text(encoding="ascii").strip().partition(" ")
        began_ns = int(origin_ns)
    except (ValueError, OSError, RecursionError) as error:
        raise ProbeFileError(f"{folder}: {error}") from error
    sampled = read(path)
    since_ns = sampled.head.wall_ns if clock == WALL else sampled.head.mono_ns
    try:
        origin_s = (began_ns - since_ns) * 1e-9
    except OverflowError as error:
        raise ProbeFileError(f"{folder / START}: {error}") from error
    found = series(sampled, where, origin_s)
    return tuple(since for one in found if (since := _since_start(one)).values)


def _since_start(one: Series) -> Series:
    """Return a series without what was before the load."""
    first = next((i for i, t_s in enumerate(one.t_s) if t_s >= _LEAST_S), len(one.t_s))
    return Series(one.name, one.unit, one.t_s[first:], one.values[first:])


def used(found: Sequence[Series], window: Window) -> tuple[Metric, ...]:
    """Return what was used of the processors in a window, by whom.

    `cpu_busy_ratio` and `cpu_steal_ratio` are shares of all processors' time; in cores are
    `probe_cpu_cores`, the sampler itself, and `cpu_other_cores`, what neither server nor load nor
    sampler used; `load_cpu_ratio` is the share of what the load's threads can use.  What was not
    sampled is left out.
    """
    spent = {s.name: _sum(s, window) for s in found if s.name in {*_ALL, *_OURS}}
    total = sum(spent.get(name, 0.0) for name in _ALL)
    if not total:
        return ()
    busy = sum(spent.get(name, 0.0) for name in _BUSY)
    return (
        Metric("cpu_busy_ratio", busy / total, "ratio"),
        Metric("cpu_steal_ratio", sum(spent.get(n, 0.0) for n in _STEAL) / total, "ratio"),
        *_by_whom(found, window, spent, busy),
    )


def _by_whom(
    found: Sequence[Series], window: Window, spent: Mapping[str, float], busy: float
) -> Iterator[Metric]:
    ticks = sum(window.holds(t_s) for s in found if s.name == "cpu.idle" for t_s in s.t_s)
    if not ticks:
        return
    yield Metric("probe_cpu_cores", spent.get("probe.cpu", 0.0) / ticks, "cores")
    if _LOAD not in spent:
        return
    ours = sum(spent.get(name, 0.0) for name in _OURS)
    yield Metric("cpu_other_cores", max(0.0, busy - ours) / ticks, "cores")
    threads = next((s for s in found if s.name == "process.load.threads"), None)
    if threads and (
        most := max(
            (v for t, v in zip(threads.t_s, threads.values, strict=True) if window.holds(t)),
            default=0.0,
        )
    ):
        cores = round(sum(spent.get(name, 0.0) for name in _ALL) / ticks)
        yield Metric("load_cpu_ratio", spent[_LOAD] / ticks / max(1.0, min(most, cores)), "ratio")


def _sum(one: Series, window: Window) -> float:
    return sum(v for t_s, v in zip(one.t_s, one.values, strict=True) if window.holds(t_s))
