"""The series that reports show, derived from a trial's sample, and what its window used.

What a host or server does not provide is left out, never zero.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from mydyno.model import Metric, Series, Window
from mydyno.sample.probe_file import ProbeFileError, Sampled, Values, read
from mydyno.sample.sampler import FILE, START, WALL, WHERE, Where
from mydyno.stack.flavours import redo_columns

_LATE = 2.5  # intervals without a reading are a gap from here on, not a long second


@dataclass(frozen=True, slots=True)
class Track:
    """Values with the monotonic seconds they belong to; NaN where nothing is known."""

    at_s: Values
    values: Values

    def __add__(self, other: "Track") -> "Track":
        return Track(self.at_s, self.values + other.values)

    def __sub__(self, other: "Track") -> "Track":
        return Track(self.at_s, self.values - other.values)

    def over(self, other: "Track") -> "Track":
        """Return this track divided by another; NaN where that is zero."""
        divisor = np.where(other.values == 0, np.nan, other.values)
        return Track(self.at_s, self.values / divisor)


def level(sampled: Sampled, name: str, of: str = "") -> Track | None:
    """Return a gauge as it was read, or None where the host or server does not have it."""
    values = sampled.find(name, of)
    return None if values is None else Track(sampled.read_at(name, of), values)


def rate(sampled: Sampled, name: str, of: str = "") -> Track | None:
    """Return a counter's rate per second, at the later of two readings; None without the counter.

    NaN where it fell or its process restarted, and where two readings are too far apart to give a
    rate by the second.
    """
    counter = level(sampled, name, of)
    if counter is None:
        return None
    known = np.flatnonzero(~np.isnan(counter.values) & ~np.isnan(counter.at_s))
    rates = np.full(len(counter.values), np.nan)
    if len(known) > 1:
        passed = np.diff(counter.at_s[known])
        steps = np.diff(counted_once(counter.values[known]))
        longest = _LATE * max(float(np.median(passed)), sampled.head.interval_ns * 1e-9)
        valid = (passed > 0) & (passed < longest) & (steps >= 0)
        valid &= _same(sampled, sampled.restarts(name, of), known)
        rates[known[1:][valid]] = steps[valid] / passed[valid]
    return Track(counter.at_s, rates)


def counted_once(counters: Values) -> Values:
    """Return readings of counters without those that were too high: the next one stands for it.

    MySQL 5.6 and 5.7 and MariaDB 10.11 count a connection that ends twice for a moment.
    """
    before, now, after = counters[:-2], counters[1:-1], counters[2:]
    right = np.where((before <= after) & (after < now), after, now)
    return np.concatenate((counters[:1], right, counters[1:][-1:]))


def _same(
    sampled: Sampled, restarts: NDArray[np.int64], known: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return for each step between two readings whether no restart fell into it."""
    before = np.searchsorted(restarts, sampled.seqs[known], side="right")
    return np.asarray(np.diff(before) == 0)


Make = Callable[[Sampled, str], Track | None]
Table = Mapping[str, tuple[str, Make]]
"""Name to unit and maker; a maker is given the instance: a disk, an interface, a role, or none."""

ALL = "all"  # the instance that is the sum over the processors
_CORES, _PER_S, _BYTES_PER_S, _RATIO = "cores", "/s", "B/s", "ratio"


def series(
    sampled: Sampled, where: Where, origin_s: float, more: Table | None = None
) -> tuple[Series, ...]:
    """Return the series of a trial; time counts from `origin_s`, in seconds since the head.

    CPU is in cores: seconds of CPU time in a second, over all processors.  Those of the table
    `more`, of the server, are added.
    """
    tables = [(CPU, ALL), (HOST, ""), (SERVER, ""), (more or {}, "")]
    tables += [(DISK, where.disk)] if where.disk else []
    tables += [(NET, where.interface)] if where.interface else []
    made = [
        _series(name, unit, track, origin_s)
        for table, of in tables
        for name, unit, track in tracks(table, sampled, of)
    ]
    made += _link_used(made, where.link_bytes_per_s)
    for role in ROLES:
        for name, unit, track in tracks(PROCESS, sampled, role):
            made.append(_series(name.format(role=role), unit, track, origin_s))
    return tuple(one for one in made if one.values)


def _link_used(made: Sequence[Series], link_bytes_per_s: float | None) -> list[Series]:
    """Return the share of the link's speed that the busier direction takes, where it is known."""
    ways = [one for one in made if one.name in NET]
    if not link_bytes_per_s or len(ways) != len(NET):
        return []
    times, (one, other) = ways[0].t_s, (way.values for way in ways)
    busier = map(max, one, other)
    return [Series("net.used", _RATIO, times, tuple(v / link_bytes_per_s for v in busier))]


def tracks(table: Table, sampled: Sampled, of: str) -> Iterator[tuple[str, str, Track]]:
    """Yield name, unit and track of what a table makes of one instance and the sample has."""
    made = ((name, make(sampled, of)) for name, (_, make) in table.items())
    found = _by_the_clock({name: track for name, track in made if track}, cpus_online(sampled))
    for name, track in found.items():
        yield name, table[name][0], track


def cpus_online(sampled: Sampled) -> Values:
    """Return how many CPUs there were at each tick; those of the head where none has a column."""
    each = [sampled.find("cpu.idle", one) for one in sampled.instances("cpu.idle") if one != ALL]
    there = [~np.isnan(values) for values in each if values is not None]
    if not there:
        return np.full(len(sampled.seqs), float(sampled.head.cpus))
    return np.asarray(np.sum(there, axis=0), dtype=np.float64)


def _by_the_clock(found: Mapping[str, Track], cpus: Values) -> Mapping[str, Track]:
    """Return tracks, those of the processors' work among them made to be what is not idle.

    Many kernels count idle time by the clock, and work by which mode each timer tick interrupts.
    Work in step with the ticks, as of a paced disk, is seen many times too often or not at all: the
    modes share what is left of all cores; what no tick saw is the system's.
    """
    if not set(_ALL) <= found.keys():
        return found
    unused, ticks = (reduce(add, (found[n] for n in names)) for names in (_UNUSED, _BUSY))
    left = np.clip(cpus - unused.values, 0.0, None)
    work = {}
    for name in _BUSY:
        unseen = float(name == "cpu.system")
        share = np.where(ticks.values == 0, unseen, found[name].over(ticks).values)
        work[name] = Track(ticks.at_s, share * left)
    return {**found, **work}


def _series(name: str, unit: str, track: Track, origin_s: float) -> Series:
    known = ~np.isnan(track.at_s) & ~np.isnan(track.values)
    times = np.round(track.at_s[known] - origin_s, 3)
    return Series(name, unit, tuple(times.tolist()), tuple(track.values[known].tolist()))


def rates(*columns: str) -> Make:
    """Return a maker of the sum of some counters' rates; all of them must be there."""

    def made(sampled: Sampled, of: str) -> Track | None:
        found = [track for name in columns if (track := rate(sampled, name, of))]
        return reduce(add, found) if len(found) == len(columns) else None

    return made


def levels(column: str) -> Make:
    """Return a maker of a gauge as it was read."""
    return lambda sampled, of: level(sampled, column, of)


def _per(spent: str, done: str) -> Make:
    """Return a maker of what one operation took on average (iostat's await)."""

    def made(sampled: Sampled, of: str) -> Track | None:
        time, count = rate(sampled, spent, of), rate(sampled, done, of)
        return time.over(count) if time and count else None

    return made


def _hit_ratio(sampled: Sampled, of: str) -> Track | None:
    """Return the share of page requests that found the page in the buffer pool."""
    missed = rate(sampled, "status.innodb_buffer_pool_reads", of)
    asked = rate(sampled, "status.innodb_buffer_pool_read_requests", of)
    if not missed or not asked:
        return None
    share = missed.over(asked)
    return Track(share.at_s, np.clip(1.0 - share.values, 0.0, 1.0))


def _dirty_share(sampled: Sampled, of: str) -> Track | None:
    """Return the share of the buffer pool's pages that are dirty."""
    dirty = level(sampled, "status.innodb_buffer_pool_pages_dirty", of)
    total = level(sampled, "status.innodb_buffer_pool_pages_total", of)
    return dirty.over(total) if dirty and total else None


def checkpoint_age(sampled: Sampled, of: str) -> Track | None:
    """Return how many bytes of redo a crash would have to read, by the server's own names."""
    known = redo_columns()
    for one in known:
        if one.age and (track := level(sampled, one.age, of)):
            return track
    for one in known:
        now, then = level(sampled, one.lsn, of), level(sampled, one.checkpoint, of)
        if now and then:
            return now - then
    return None


def _redo_rate(sampled: Sampled, of: str) -> Track | None:
    """Return the bytes of redo written in a second; of a log that has no LSN, padding included."""
    names = (*(one.lsn for one in redo_columns()), "status.innodb_os_log_written")
    return next((track for name in names if (track := rate(sampled, name, of))), None)


CPU: Table = {
    "cpu.user": (_CORES, rates("cpu.user", "cpu.nice")),
    "cpu.system": (_CORES, rates("cpu.system")),
    "cpu.iowait": (_CORES, rates("cpu.iowait")),
    "cpu.irq": (_CORES, rates("cpu.irq", "cpu.softirq")),
    "cpu.steal": (_CORES, rates("cpu.steal")),
    "cpu.idle": (_CORES, rates("cpu.idle")),
}
HOST: Table = {
    "psi.cpu": (_RATIO, rates("psi.cpu.some")),
    "psi.io": (_RATIO, rates("psi.io.some")),
    "psi.memory": (_RATIO, rates("psi.memory.some")),
    "memory.dirty": ("B", levels("memory.dirty")),
    "net.retransmits": (_PER_S, rates("tcp.retransmits")),
    "probe.cpu": (_CORES, rates("probe.cpu")),
}
DISK: Table = {
    "disk.reads": (_PER_S, rates("disk.reads")),
    "disk.writes": (_PER_S, rates("disk.writes")),
    "disk.flushes": (_PER_S, rates("disk.flushes")),
    "disk.read_bytes": (_BYTES_PER_S, rates("disk.read_bytes")),
    "disk.write_bytes": (_BYTES_PER_S, rates("disk.write_bytes")),
    "disk.read_latency": ("s", _per("disk.read_s", "disk.reads")),
    "disk.write_latency": ("s", _per("disk.write_s", "disk.writes")),
    "disk.flush_latency": ("s", _per("disk.flush_s", "disk.flushes")),
    "disk.queue": ("", rates("disk.weighted_s")),
}
NET: Table = {
    "net.rx_bytes": (_BYTES_PER_S, rates("net.rx_bytes")),
    "net.tx_bytes": (_BYTES_PER_S, rates("net.tx_bytes")),
}
SERVER: Table = {
    "innodb.hit_ratio": (_RATIO, _hit_ratio),
    "innodb.dirty_share": (_RATIO, _dirty_share),
    "innodb.checkpoint_age": ("B", checkpoint_age),
    "innodb.redo_rate": (_BYTES_PER_S, _redo_rate),
    "innodb.reads": (_PER_S, rates("status.innodb_pages_read")),
    "innodb.writes": (_PER_S, rates("status.innodb_pages_written")),
    "innodb.row_lock_waits": (_PER_S, rates("status.innodb_row_lock_waits")),
    "threads_running": ("", levels("status.threads_running")),
}
POOL: Table = {  # for `deferred` only; reports do not show it
    "innodb.data_pages": ("", levels("status.innodb_buffer_pool_pages_data")),
    "innodb.free_pages": ("", levels("status.innodb_buffer_pool_pages_free")),
}
PROCESS: Table = {
    "process.{role}.cpu": (_CORES, rates("process.cpu_user", "process.cpu_system")),
    "process.{role}.threads": ("", levels("process.threads")),
}

_BUSY = ("cpu.user", "cpu.system", "cpu.irq")
_STEAL = ("cpu.steal",)
_UNUSED = (*_STEAL, "cpu.iowait", "cpu.idle")
_ALL = (*_BUSY, *_UNUSED)
_LOAD = "process.load.cpu"
ROLES = ("mysqld", "load", "slow", "wire", "lab")
"""The processes that are watched: server, load, and what mydyno runs of a lab."""
_OURS = ("probe.cpu", *(f"process.{role}.cpu" for role in ROLES))
_SPARE_PAGES = 2048  # that a full pool may have free: more than innodb_lru_scan_depth by default
_LEAST_S = 1e-3  # what cannot be distinguished from a load's very beginning


def sampled_series(folder: Path, more: Table | None = None) -> tuple[Series, ...]:
    """Return a trial's series in the time of its load; none where it was not sampled.

    Those of the table `more` are added.  Raises `ProbeFileError` for a file that is not one of the
    sampler's.
    """
    made = opened(folder)
    if made is None:
        return ()
    sampled, where, origin_s = made
    found = series(sampled, where, origin_s, more)
    return tuple(since for one in found if (since := _since_start(one)).values)


def opened(folder: Path) -> tuple[Sampled, Where, float] | None:
    """Return a trial's sample, what it was of, and when its load began in the time of the head.

    None where it was not sampled; raises `ProbeFileError` for a file that is not one.
    """
    path, start = folder / FILE, folder / START
    if not path.exists() or not start.exists():
        return None
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
    return corrected(sampled, where), where, origin_s


_FLUSHES = ("disk.flushes", "disk.flush_s")
_TIMED = {"disk.reads": "disk.read_s", "disk.writes": "disk.write_s"}
_MANY = 1000.0  # requests: so many take some time


def corrected(sampled: Sampled, where: Where) -> Sampled:
    """Return a sample without what the kernel does not count of its disk: that is no zero.

    LVM and md hand a flush to each of their disks, and the kernel counts it there alone: the mean
    of these stands for it.  Before Linux 5.9 it takes no times of requests to md.
    """
    flushed = sampled.put(_flushes_below(sampled, where))
    grown = {name: _growth(flushed, name, where.disk) for pair in _TIMED.items() for name in pair}
    if not any(grown[count] > _MANY and not grown[time] for count, time in _TIMED.items()):
        return flushed
    times = [(name, where.disk) for name in (*_TIMED.values(), "disk.weighted_s")]
    return flushed.put({key: v * np.nan for key in times if (v := flushed.find(*key)) is not None})


def _flushes_below(sampled: Sampled, where: Where) -> dict[tuple[str, str], Values]:
    found: dict[tuple[str, str], Values] = {}
    for name in _FLUSHES:
        own, below = sampled.find(name, where.disk), [sampled.find(name, d) for d in where.below]
        counted = [values for values in below if values is not None]
        if own is None or not counted or np.nan_to_num(own).any():
            return {}
        found[name, where.disk] = np.mean(counted, axis=0)
    return found


def _growth(sampled: Sampled, name: str, of: str) -> float:
    values = sampled.find(name, of)
    known = np.zeros(1) if values is None else values[~np.isnan(values)]
    return float(known.max() - known.min()) if known.size else 0.0


def _since_start(one: Series) -> Series:
    """Return a series without what was before the load."""
    first = next((i for i, t_s in enumerate(one.t_s) if t_s >= _LEAST_S), len(one.t_s))
    return Series(one.name, one.unit, one.t_s[first:], one.values[first:])


def used(found: Sequence[Series], window: Window) -> tuple[Metric, ...]:
    """Return what was used of the processors in a window, by whom, and of the disk.

    `cpu_busy_ratio` and `cpu_steal_ratio` are shares of all processors' time; in cores are
    `probe_cpu_cores`, the sampler itself, and `cpu_other_cores`, what neither server nor load,
    sampler nor lab used; `load_cpu_ratio` is the share of what the load's threads can use.  What
    was not sampled is left out.  `disk_writes` is the mean of the writes that reach the disk.
    """
    writes = _held(found, "disk.writes", window)
    on_disk = [Metric("disk_writes", _mean(writes), "/s")] if writes else []
    spent = {
        s.name: sum(v for t_s, v in zip(s.t_s, s.values, strict=True) if window.holds(t_s))
        for s in found
        if s.name in {*_ALL, *_OURS}
    }
    total = sum(spent.get(name, 0.0) for name in _ALL)
    if not total:
        return tuple(on_disk)
    busy = sum(spent.get(name, 0.0) for name in _BUSY)
    return (
        Metric("cpu_busy_ratio", busy / total, "ratio"),
        Metric("cpu_steal_ratio", sum(spent.get(n, 0.0) for n in _STEAL) / total, "ratio"),
        *_by_whom(found, window, spent, busy),
        *on_disk,
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


def deferred(found: Sequence[Series], window: Window) -> tuple[Metric, ...]:
    """Return what InnoDB left for later in a window, and how far its buffer pool (`POOL`) filled.

    `innodb_redo_bytes` and `innodb_pages_written` are means.  `checkpoint_age_rise_ratio` is the
    share of the redo of the window's second half by which the checkpoint age grew in it, from
    `checkpoint_age_before` to `checkpoint_age_after`: about 0 where pages are flushed as fast as
    they are changed.  `pool_filled_ratio` is the share of the pages in the pool that took a free
    page in the window; a full pool frees some ahead of need.  What was not sampled is left out.
    """
    half = Window((window.start_s + window.end_s) / 2, window.end_s)
    redo, late = (_held(found, "innodb.redo_rate", some) for some in (window, half))
    pages, free, data = (
        _held(found, f"innodb.{n}", window) for n in ("writes", "free_pages", "data_pages")
    )
    made = [Metric("innodb_redo_bytes", _mean(redo), "B/s")] if redo else []
    made += [Metric("innodb_pages_written", _mean(pages), "/s")] if pages else []
    if free and data and data[-1][1] > 0:
        filled = max(0.0, free[0][1] - max(free[-1][1], _SPARE_PAGES)) / data[-1][1]
        made.append(Metric("pool_filled_ratio", filled, "ratio"))
    ages = _held(found, "innodb.checkpoint_age", half)
    if len(ages) > 1 and (written := _mean(late) * (ages[-1][0] - ages[0][0])) > 0:
        before, after = ages[0][1], ages[-1][1]
        made.append(Metric("checkpoint_age_before", before, "B"))
        made.append(Metric("checkpoint_age_after", after, "B"))
        made.append(Metric("checkpoint_age_rise_ratio", (after - before) / written, "ratio"))
    return tuple(made)


def _held(found: Sequence[Series], name: str, window: Window) -> list[tuple[float, float]]:
    """Return the times and values of one series in a window."""
    some = (pair for s in found if s.name == name for pair in zip(s.t_s, s.values, strict=True))
    return [pair for pair in some if window.holds(pair[0])]


def _mean(pairs: Sequence[tuple[float, float]]) -> float:
    return sum(value for _, value in pairs) / len(pairs) if pairs else 0.0
