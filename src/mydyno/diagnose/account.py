"""The account: where the connections of a closed loop are, on average, while a load runs.

A closed loop of N connections spends N connection-seconds in a second.  Each line is the part of
it that one cause takes; what no line explains is `UNKNOWN`.  The inputs are the figures of a
sample (`mydyno.sample.figures`): means over the measured window, by the names of the probe's
columns.
"""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt

import msgspec

from mydyno.diagnose import network

Means = Mapping[str, float]

CPU, RUN_QUEUE, FAULT = "server_cpu", "server_run_queue", "page_fault"
READ, WRITE, LOG, JOURNAL, TEMPORARY = "disk_read", "disk_write", "log", "journal", "temporary"
ROW_LOCK, TABLE_LOCK, LATCH, SLEEP = "row_lock", "table_lock", "latch", "server_sleep"
POOL = "thread_pool"
LOAD_CPU, LOAD_RUN_QUEUE, THINK = "load_cpu", "load_run_queue", "think"
NETWORK, CLIENT, UNKNOWN = "network", "client", "unknown"

STATES: Mapping[str, str] = {
    CPU: "on a CPU of the server",
    RUN_QUEUE: "waiting for a CPU of the server",
    READ: "reading data from disk",
    WRITE: "writing data to disk",
    LOG: "flushing the log",
    JOURNAL: "waiting for the filesystem's journal",
    TEMPORARY: "temporary files",
    ROW_LOCK: "row locks",
    TABLE_LOCK: "locks of tables, metadata and names",
    LATCH: "latches, other locks, group commit",
    SLEEP: "sleeping in the server for a set time",
    FAULT: "page faults, mapping of memory",
    POOL: "waiting for a thread of the pool, a latch or the network",
    LOAD_CPU: "on a CPU of the load",
    LOAD_RUN_QUEUE: "waiting for a CPU of the load",
    THINK: "the load asks for nothing",
    NETWORK: "network, and the kernel between both",
    CLIENT: "waiting for the client or the network",
    UNKNOWN: "unknown",
}
"""Every state of a connection, in the order in which it is shown, and its words."""

SERVED = (
    *(CPU, RUN_QUEUE, READ, WRITE, LOG, JOURNAL, TEMPORARY),
    *(ROW_LOCK, TABLE_LOCK, LATCH, SLEEP, FAULT),
)
"""States of a connection that a thread of the server serves."""

QUEUES = frozenset({CPU, READ, WRITE, LOAD_CPU, NETWORK})
"""States in which connections wait for each other at one station; the CPU's include its queue."""

OWN = "mysqld/connection"
"""The class of the threads that the server lists as serving a connection."""

# MySQL's threads of that name which it does not list: cached ones, and those of connections that
# are younger than the list; and those that it lists and that serve no client.  Earlier probes had
# all of them in the first.
YOUNG, APART = "mysqld/connection unlisted", "mysqld/connection apart"

_OF_LOAD = frozenset({LOAD_CPU, LOAD_RUN_QUEUE, THINK, NETWORK})
_EXACT = frozenset({CPU, RUN_QUEUE, ROW_LOCK})
_HALF, _STEP, _FARTHEST = 0.5, 1.1, 10.0  # of an elasticity; of a speed, in steps and at most
_LISTED = 0.75  # least share of N whose threads are seen; those that last for one query are missed
_CLOSES = 0.03  # share of N by which an account may miss it
_READS = ("data", "undo")
_CACHED = "status.threads_cached"
_ASIDE = ("other", "log")  # that background threads read, too, to wait for work
_WRITES = ("data", "doublewrite", "undo", "other", "log")
_LOGS = ("redo", "binlog", "relay")


class AccountLine(msgspec.Struct, frozen=True):
    """One state: so many connections are in it on average, a share of all.

    `exact`: the kernel or server counted it; else it was sampled or is a remainder.
    """

    state: str
    connections: float
    share: float
    source: str = ""
    exact: bool = False


class Account(msgspec.Struct, frozen=True):
    """The lines of `n` connections; `doubts` names the checks that did not hold.

    `gap` is how many more are on or waiting for a CPU by looks than by the kernel's own count,
    which is the one used.  `listed` is how many connections the server listed, `in_flight` Little's
    product of the load's own rate and mean latency; both are None where they are not known.
    """

    n: float
    lines: list[AccountLine]
    unknown: float
    gap: float
    listed: float | None = None
    in_flight: float | None = None
    doubts: list[str] = []

    @property
    def hidden(self) -> frozenset[str]:
        """Return the states that other lines hold, where what separates them was not sampled."""
        there = {line.state for line in self.lines}
        apart = _OF_LOAD | {POOL} if "pool" in self.doubts else _OF_LOAD
        return (apart if CLIENT in there else frozenset()) | ({TABLE_LOCK, LATCH, SLEEP} - there)

    def of(self, *states: str) -> float:
        """Return how many connections are in these states together."""
        return sum(line.connections for line in self.lines if line.state in states)


def account(figures: Means, n: float, in_flight: float | None = None) -> Account | None:
    """Return the account of `n` connections, None where the threads' states were not sampled.

    `in_flight` is the throughput times the mean latency, for loads without a pause or a rate.
    """
    pool = pooled(figures)
    listed = connections_listed(figures)
    shared = pool or listed < _LISTED * n
    own = _of(figures, *_classes(figures, "mysqld")) if shared else _serving(figures)
    if own.keys() <= {"cpu", "run_delay"}:  # what the kernel lets everybody read
        return None
    own, gap = _split(own)
    lines = dict(_server(figures, own, n, shared=shared))
    if pool:  # its threads wait for any connection: what none of them serves is left
        waiting = n - sum(lines.values())
    else:  # less what serves no load: connections; or the thread that lets them in, and the probe's
        waiting = _asleep(own) - (2.0 if shared else max(0.0, listed - n))
    lines |= _client(figures, max(0.0, waiting), n, POOL if pool else NETWORK)
    unknown = n - sum(lines.values())
    doubts = [*_doubts(figures, n, gap, in_flight)]
    if shared:
        doubts.append("pool" if pool else "shared")
    elif listed < n * (1 - _CLOSES):
        doubts.append("unlisted")
    if unknown < -_CLOSES * n:
        doubts.append("over")
    sources = {
        CPU: "schedstat",
        RUN_QUEUE: "schedstat",
        ROW_LOCK: "Innodb_row_lock_time, _current_waits",
        TABLE_LOCK: "process list",
    }
    found = [
        AccountLine(state, x, x / n, sources.get(state, "sampled"), state in _EXACT)
        for state in STATES
        if (x := lines.get(state)) is not None
    ]
    found.append(AccountLine(UNKNOWN, unknown, unknown / n, "remainder"))
    return Account(n, found, unknown, gap, listed or None, in_flight, doubts)


def pooled(figures: Means) -> bool:
    """Return whether all connections share the threads of a pool."""
    return figures.get("status.threadpool_threads", 0.0) > 0


def connections_listed(figures: Means) -> float:
    """Return how many connections have a thread that is known as theirs, 0 where none is."""
    if pooled(figures):
        return 0.0
    young = figures.get(f"state.threads:{YOUNG}", 0.0) - figures.get(_CACHED, 0.0)
    return figures.get(f"state.threads:{OWN}", 0.0) + (max(0.0, young) if _apart(figures) else 0.0)


def connections_idle(figures: Means) -> float:
    """Return how many of those were asked for nothing, each for a second."""
    return 0.0 if pooled(figures) else figures.get(f"state.idle:{OWN}", 0.0)


def expected(found: Account) -> dict[str, float]:
    """Return each state's elasticity as a product-form network would have it; only a rank.

    States of a queue get what is saturated, those without one their share.
    """
    stations = _stations(found.lines, found.n)
    worth = network.elasticities(stations, max(1, round(found.n))) if stations else {}
    return {**worth, **({POOL: share} if (share := found.of(POOL) / found.n) else {})}


def following(
    lines: Sequence[AccountLine], n: float, limit: Sequence[str]
) -> tuple[str, float] | None:
    """Return which state limits next once those of `limit` are faster, and how much faster.

    None where another does not follow within `_FARTHEST` times, where it is not known which, or
    where those are not the limit by the account to begin with.
    """
    stations, times = _stations(lines, n), 1.0
    worth = network.elasticities(stations, max(1, round(n))) if stations else {}
    if sum(worth.get(name, 0.0) for name in limit) < _HALF:
        return None
    while stations and times * _STEP <= _FARTHEST:
        times *= _STEP
        faster = [
            network.Station(s.name, s.demand_s / (times if s.name in limit else 1.0), s.queues)
            for s in stations
        ]
        worth = network.elasticities(faster, max(1, round(n)))
        if sum(worth.get(name, 0.0) for name in limit) < _HALF:
            others = {name: e for name, e in worth.items() if name not in limit}
            after = max(others, key=lambda name: others[name])
            return None if after == UNKNOWN else (after, times)
    return None


def _stations(lines: Sequence[AccountLine], n: float) -> list[network.Station]:
    """Return the network that has its connections where an account has them.

    What waits for a thread of a pool waits for what its threads do, one thing after the other.
    """
    lengths = {line.state: max(line.connections, 0.0) for line in lines}
    held, served = lengths.pop(POOL, 0.0), sum(lengths.get(state, 0.0) for state in SERVED)
    for state in lengths.keys() & {*SERVED} if served else ():
        lengths[state] *= 1 + held / served
    for cpu, queue in ((CPU, RUN_QUEUE), (LOAD_CPU, LOAD_RUN_QUEUE)):
        if cpu in lengths:
            lengths[cpu] += lengths.pop(queue, 0.0)
    if sum(lengths.values()) <= 0:
        return []
    queues = QUEUES.difference(SERVED) if held else QUEUES
    return network.fitted(lengths, queues, max(1, round(n)))


def _classes(figures: Means, role: str) -> list[str]:
    start = f"state.threads:{role}/"
    return [key.partition(":")[2] for key in figures if key.startswith(start)]


def _of(figures: Means, *classes: str) -> dict[str, float]:
    """Return the threads of some classes by state, with what the kernel counted of their CPU."""
    found: dict[str, float] = {}
    for one in classes:
        start = f"state.seconds:{one}/"
        for key, value in figures.items():
            if key.startswith(start):
                state = key.removeprefix(start)
                found[state] = found.get(state, 0.0) + value
        for name in ("cpu", "run_delay"):
            if (key := f"state.{name}:{one}") in figures:
                found[name] = found.get(name, 0.0) + figures[key]
    return found


def _apart(figures: Means) -> bool:
    """Return whether only cached threads and young connections are unlisted."""
    return f"state.threads:{APART}" in figures and _CACHED in figures


def _serving(figures: Means) -> dict[str, float]:
    """Return the threads of connections by state, those that are too young to be listed, too."""
    if not _apart(figures):
        return _of(figures, OWN)
    found, cached = _of(figures, OWN, YOUNG), figures[_CACHED]
    return {**found, "futex": max(0.0, found.get("futex", 0.0) - cached)}


def _split(own: Mapping[str, float]) -> tuple[dict[str, float], float]:
    """Return the threads by state, of which the kernel's count has those of the CPU; and the gap.

    The looks divide what remains: a look takes a CPU itself, so that who shares it waits for its
    end, and is seen to run more often than it does.
    """
    seen = sum(value for state, value in own.items() if state not in {"cpu", "run_delay"})
    counted = own.get("cpu", 0.0) + own.get("run_delay", 0.0)
    rest = seen - own.get("running", 0.0)
    part = max(0.0, seen - counted) / rest if rest > 0 and "cpu" in own else 1.0
    exact = {"cpu", "run_delay", "running"}
    return (
        {state: value * (1.0 if state in exact else part) for state, value in own.items()},
        own.get("running", 0.0) - counted,
    )


def _asleep(own: Mapping[str, float]) -> float:
    """Return how many threads wait for what their connection sends, or for it to take something."""
    return own.get("poll", 0.0) + own.get("read.socket", 0.0) + own.get("write.socket", 0.0)


def _server(
    figures: Means, own: Mapping[str, float], n: float, *, shared: bool
) -> Iterator[tuple[str, float]]:
    """Yield the lines of the server's threads; of all its threads where they are `shared`."""

    def total(call: str, files: Sequence[str]) -> float:
        return sum(own.get(f"{call}.{file}", 0.0) for file in files)

    journals = sum(value for state, value in own.items() if state.endswith(".journal"))
    yield CPU, own.get("cpu", 0.0)
    yield RUN_QUEUE, own.get("run_delay", 0.0)
    yield READ, total("read", _READS if shared else (*_READS, *_ASIDE))
    submitted = 0.0 if shared else own.get("aio", 0.0)
    yield WRITE, total("write", _WRITES) + total("sync", _WRITES) + submitted
    yield LOG, total("write", _LOGS) + total("sync", _LOGS) + total("read", _LOGS)
    yield JOURNAL, journals
    yield TEMPORARY, sum(own.get(f"{call}.temporary", 0.0) for call in ("read", "write", "sync"))
    yield FAULT, own.get("fault", 0.0) + own.get("memory", 0.0)  # both wait for one lock
    ended = figures.get("status.innodb_row_lock_time", 0.0) * 1e-3  # counted as a wait ends
    locked = min(max(ended, figures.get("status.innodb_row_lock_current_waits", 0.0)), n)
    # background threads sleep in the same call as what waits for a lock
    waiting = n if shared else own.get("futex", 0.0)
    rows, tables = min(locked, waiting), figures.get("session.locked")
    yield ROW_LOCK, rows
    if tables is not None:
        yield TABLE_LOCK, min(tables, waiting - rows)
    if shared:
        return
    yield LATCH, max(0.0, waiting - rows - (tables or 0.0))
    yield SLEEP, own.get("sleep", 0.0)


def _client(figures: Means, waiting: float, n: float, rest: str) -> dict[str, float]:
    """Split the connections for which the server waits by what the load's threads do.

    `rest` is the state of those of which neither end does anything.  Of a load elsewhere no thread
    is seen, and of one that starts other processes those of its first one.
    """
    load = _of(figures, *_classes(figures, "load"))
    threads = sum(v for k, v in figures.items() if k.startswith("state.threads:load/"))
    if threads < _LISTED * n:
        return {CLIENT: waiting}
    helpers = max(0.0, threads - n)  # the tool's own: they wait for its end
    idle = sum(load.get(s, 0.0) for s in ("sleep", "futex")) - helpers
    found = {
        LOAD_CPU: cpu_of_load(figures),
        LOAD_RUN_QUEUE: max(load.get("run_delay", 0.0), figures.get("process.run_delay:load", 0.0)),
        THINK: max(0.0, idle),
    }
    busy = sum(found.values())
    if busy > waiting:  # both ends can be on a CPU at once for a moment
        found = {state: value * waiting / busy for state, value in found.items()}
    return {**found, rest: waiting - sum(found.values())}


def cpu_of_load(figures: Means) -> float:
    """Return the CPUs that the load uses: by its processes where threads have come and gone."""
    threads = sum(value for key, value in figures.items() if key.startswith("state.cpu:load/"))
    modes = (figures.get(f"process.cpu_{mode}:load", 0.0) for mode in ("user", "system"))
    return max(threads, sum(modes))


def _doubts(figures: Means, n: float, gap: float, in_flight: float | None) -> Iterator[str]:
    """Yield the checks that do not hold."""
    looks = figures.get("state.looks:mysqld", 0.0) * figures.get("window.seconds", 0.0)
    if abs(gap) > n * max(_CLOSES, 1.0 / sqrt(looks * n) if looks else 0.0):
        yield "looks"
    if in_flight is not None and abs(in_flight - n) > _CLOSES * n:
        yield "little"
