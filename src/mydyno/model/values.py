"""Value types shared by all packages."""

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from itertools import accumulate
from typing import Any, Generic, NamedTuple, TypeVar

T = TypeVar("T")
HIGHEST_US = 3_600_000_000  # an hour: longer than any query a trial can hold
DIGITS = 3  # of an HdrHistogram of latencies (G. Tene, 2012)
_SLACK_S = 0.05  # sysbench reports its 60th second anywhere between 59.99 and 60.01

Settings = Mapping[str, str]
"""Keys are ``<role>/<layer>.<name>``: ``db/mysqld.sync_binlog``, ``load/env.LD_PRELOAD``."""


class Cost(IntEnum):
    """What a change interrupts, cheapest first."""

    ONLINE = 0
    RESTART = 1
    REMOUNT = 2
    REFORMAT = 3
    REBOOT = 4


class Durability(Enum):
    """Whether a change lets a crash lose more than the baseline would."""

    SAME = "same"
    WEAKER = "weaker"


class Reset(Enum):
    """What is restored before a trial: the data set, only the server process, or nothing."""

    DATASET = "dataset"
    RESTART = "restart"
    NONE = "none"


class TrialStatus(Enum):
    """How a trial ended; UNKNOWN means it may or may not have measured what was asked.

    Two are set by the analysis only: STALLED for a trial that ran to its end without any work, VOID
    for a trial that was disturbed from outside.
    """

    OK = "ok"
    FAILED = "failed"
    UNKNOWN = "unknown"
    STALLED = "stalled"
    VOID = "void"


@dataclass(frozen=True, slots=True)
class Action:
    """One command for a host, as an argument vector, never as a shell string."""

    argv: tuple[str, ...]
    stdin: bytes = b""


@dataclass(frozen=True, slots=True)
class Probe(Generic[T]):
    """A query of a host: its command, and the pure function that parses the reply."""

    action: Action
    parse: Callable[[bytes], T]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one setting, with its value before and what the change interrupts.

    `key` is bare (``sync_binlog``) when a layer plans it and full (``db/mysqld.sync_binlog``)
    in the journal.  Several changes may carry the same `action`; it is then run once.
    """

    key: str
    before: str
    after: str
    action: Action
    cost: Cost = Cost.ONLINE
    durability: Durability = Durability.SAME


@dataclass(frozen=True, slots=True)
class Trial:
    """One cell of the design, to be run once: `workload` is ``rw/16``, `block` counts from 0.

    A `soak` is long and compared with nothing: it shows what short trials cannot.
    """

    id: int
    treatment: str
    workload: str
    block: int
    seed: int
    reset: Reset = Reset.DATASET
    soak: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """One reporting interval of the load, ended `t_s` seconds after the load began.

    `values` holds rates and latencies of the interval in base units: ``tps`` (/s), ``reads``
    and ``writes`` (queries/s), ``errors`` (/s), ``latency_p99_s`` (s).  `latency` is an
    HdrHistogram of microseconds, V2 compressed, base64, or empty where the tool gives none;
    `kinds` holds one for each kind of transaction, where the load distinguishes them; `by_thread`
    the transactions of each thread, where it counts them; `threads` how many there are that always
    wait for one request each, 0 where that is not so.
    """

    t_s: float
    values: Mapping[str, float]
    latency: str = ""
    kinds: Mapping[str, str] = field(default_factory=dict)
    by_thread: tuple[int, ...] = ()
    threads: int = 0


def of_kind(name: str, kind: str) -> str:
    """Return what a latency is called for one kind of transaction: ``latency_p99_payment_s``."""
    return f"{name.removesuffix('_s')}_{kind}_s"


@dataclass(frozen=True, slots=True)
class Overhead:
    """Machine time that passed before the load: a restore or a restart the load reports itself."""

    cost_s: float


@dataclass(frozen=True, slots=True)
class Window:
    """The measured part of a trial, in seconds since the load began: ``start_s < t <= end_s``."""

    start_s: float
    end_s: float

    def holds(self, t_s: float) -> bool:
        """Return whether an interval that ended at `t_s` belongs to the window."""
        return self.start_s + _SLACK_S < t_s <= self.end_s + _SLACK_S

    def reached(self, t_s: float) -> bool:
        """Return whether an interval that ended at `t_s` completes the window."""
        return t_s >= self.end_s - _SLACK_S


@dataclass(frozen=True, slots=True)
class Metric:
    """One number from one trial, in a base unit (``s``, ``B``, ``/s``, ``B/s``, ``ratio``)."""

    name: str
    value: float
    unit: str


@dataclass(frozen=True, slots=True)
class Series:
    """Samples of one quantity: value `i` belongs to the interval that ended at ``t_s[i]``."""

    name: str
    unit: str
    t_s: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Figures:
    """What a sample holds, as one figure each over a window, by the probe's names of columns.

    ``name:instance`` where there are several; those of the data's disk and of the load's interface
    have no instance.  `means` are rates per second of counters, and means of gauges, in base units;
    `spread` is the standard deviation over the seconds, and `rise` what the second half has more
    than the first, both as shares of the mean.
    """

    means: dict[str, float] = field(default_factory=dict)
    spread: dict[str, float] = field(default_factory=dict)
    rise: dict[str, float] = field(default_factory=dict)


Figure = int | float | str | Sequence[str]


@dataclass(frozen=True, slots=True)
class FindingPlace:
    """What a finding is about: a treatment, a workload, one trial; all empty for the campaign."""

    treatment: str = ""
    workload: str = ""
    trial: int | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check has found, as a value: `mydyno.report` has the words for each `code`.

    `figures` are the numbers and names of the message, in base units.
    """

    code: str
    figures: Mapping[str, Figure] = field(default_factory=dict)
    place: FindingPlace = FindingPlace()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a trial.

    `machine_time_s` counts every attempt at this trial, interrupted ones included.  `error` is the
    message of what failed; `finding` is why the analysis changed the status.
    """

    trial: Trial
    status: TrialStatus
    window: Window
    metrics: Sequence[Metric] = ()
    series: Sequence[Series] = ()
    machine_time_s: float = 0.0
    error: str = ""
    finding: Finding | None = None


class Level(NamedTuple):
    """The latencies from `low` to `high`, which a histogram counts as one, and their events."""

    low: int
    high: int
    events: int


def levels(histogram: Any) -> list[Level]:  # noqa: ANN401 - hdrh ships no types
    """Return the levels of an HdrHistogram that have events, the lowest first.

    The iterators of hdrh look at each of 24,000 places in turn, milliseconds for each histogram.
    """
    import numpy as np  # noqa: PLC0415 - costs 0.1 s, and few commands need it

    counts = np.ctypeslib.as_array(histogram.counts)
    places = counts.nonzero()[0]
    magnitude, half = histogram.sub_bucket_half_count_magnitude, histogram.sub_bucket_half_count
    bucket = np.maximum((places >> magnitude) - 1, 0)
    width = 1 << (bucket + histogram.unit_magnitude)
    low = (places - half * bucket) * width
    return list(map(Level, low.tolist(), (low + width - 1).tolist(), counts[places].tolist()))


def percentile_us(found: Sequence[Level], percent: float) -> int:
    """Return the latency that `percent` of the events did not exceed, 0 without events."""
    ends = [*accumulate(one.events for one in found)]
    rank = max(int(percent * ends[-1] / 100 + 0.5), 1) if ends else 0
    return found[bisect_left(ends, rank)].high if ends else 0


def mean_us(found: Sequence[Level]) -> float:
    """Return the mean latency, each level by its middle; 0 without events."""
    total = sum(one.events * (one.low + (one.high - one.low + 1) // 2) for one in found)
    return total / max(sum(one.events for one in found), 1)
