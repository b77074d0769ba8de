"""What a log says of one run, and what is doubtful in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mydyno.model import Interval


@dataclass(frozen=True, slots=True)
class Caveat:
    """Something a reader has to know, and the line, counted from 0, that it is about."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class ParsedRun:
    """One run as its log tells it.

    `name` and `traits` say what was run (``rndrd``; threads, block size …), `totals` is the whole
    run recomputed from counts and seconds, in base units, and holds the `response`.  `intervals`
    are those the tool reported, or one of all the run.  `lines` are the places, counted from 0, of
    the lines it rests on.  Reading `raw` again gives this reading again.
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
    """What one tool's reader made of a text: its runs, what is none, and the lines it knows."""

    readings: Sequence[ParsedRun] = ()
    rejected: Sequence[Caveat] = ()
    known: frozenset[int] = frozenset()
