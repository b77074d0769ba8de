"""One run parsed from a log, and its caveats."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mydyno.model import Interval


@dataclass(frozen=True, slots=True)
class Caveat:
    """A caveat on a result, with its line, counted from 0."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedRun:
    """One run parsed from a log.

    `name` and `traits` identify the workload (``rndrd``; threads, block size …).  `totals` is the
    entire run recomputed from counts and seconds, in base units, and contains the `response`.
    `intervals` are those the tool reported, or one of all the run.  `lines` are the places, counted
    from 0, of the lines it rests on.  Parsing `raw` gives the same run again.
    """

    name: str
    response: str
    traits: Mapping[str, str]
    totals: Mapping[str, float]
    intervals: Sequence[Interval]
    lines: Sequence[int]
    raw: bytes
    caveats: Sequence[Caveat] = field(default=())

    @property
    def seconds(self) -> float:
        """Return how long the run was, in seconds."""
        return self.totals.get("seconds") or self.intervals[-1].t_s

    @property
    def reported(self) -> bool:
        """Return whether the log has the course of the run, and not only its sum."""
        return len(self.intervals) > 1


@dataclass(frozen=True, slots=True)
class Found:
    """What one tool's parser found in a text: runs, rejected runs, and the lines it recognised."""

    readings: Sequence[ParsedRun] = ()
    rejected: Sequence[Caveat] = ()
    known: frozenset[int] = frozenset()
