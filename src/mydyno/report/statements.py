"""The statements of slow logs by class, treatments side by side."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING

from mydyno.model import Trial
from mydyno.report import units
from mydyno.stats.effects import by_key
from mydyno.stats.result import Result, Statement, StatementFigures

if TYPE_CHECKING:
    from mydyno.report.digestpage import Class, Digest

_SHOWN = 12  # classes of a workload
_NUMBERED = re.compile(r"(?<=[A-Za-z_])\d+\b")


@dataclass(frozen=True, slots=True)
class TrialLog:
    """A trial, how long its load ran, and the digest of its slow log; of some the end was `cut`."""

    trial: Trial
    load_s: float
    digest: "Digest"
    cut: bool = False

    @property
    def seconds(self) -> float:
        """Return how long what was digested took: of a log that was cut, to its last event."""
        of = self.digest.summary
        if not self.cut or not of.first_seen or not of.last_seen:
            return self.load_s
        first, last = map(datetime.fromisoformat, (of.first_seen, of.last_seen))
        return (last - first).total_seconds()


def statements(logs: Sequence[TrialLog]) -> list[Statement]:
    """Return the classes under each workload, the largest share of time first."""
    found: list[Statement] = []
    for workload, mine in by_key((log.trial.workload, log) for log in logs).items():
        of_class = by_key(
            (name, (log.trial.treatment, _figures(alike, log.seconds)))
            for log in mine
            for name, alike in by_key((_name(one), one) for one in log.digest.classes).items()
        )
        some = [Statement(workload, name, _medians(each)) for name, each in of_class.items()]
        some.sort(key=lambda s: -max(f.share for f in s.figures.values()))
        found += some[:_SHOWN]
    return found


def of_cut(logs: Sequence[TrialLog]) -> list[str]:
    """Return a warning of the logs that were cut, none where all are complete."""
    some = [f"trial {o.trial.id + 1} ({units.span(o.seconds)})" for o in logs if o.cut]
    text = (
        f"only the first GiB of the slow log was kept in {units.listed(some)}: its statements are "
        "of that time; raise mysqld.long_query_time to log fewer"
    )
    return [text] if some else []


def _name(one: "Class") -> str:
    """Return the fingerprint with one name for tables that differ by a number only."""
    return _NUMBERED.sub("N", one.fingerprint)


def _medians(each: Sequence[tuple[str, tuple[float, ...]]]) -> dict[str, StatementFigures]:
    """Return the medians over the trials of each treatment in whose logs a class is."""
    return {
        treatment: StatementFigures(*(median(column) for column in zip(*rows, strict=True)))
        for treatment, rows in by_key(each).items()
    }


def _figures(some: Sequence["Class"], seconds: float) -> tuple[float, ...]:
    """Return the figures of classes taken together; of their 95th percentiles, the largest."""
    calls = sum(one.events for one in some)
    times, examined = (
        [one.metrics[name] for one in some if name in one.metrics]
        for name in ("query_time_s", "rows_examined")
    )
    return (
        calls / seconds if seconds > 0 else 0.0,
        sum(one.sum for one in times) / max(calls, 1),
        max((one.p95 for one in times), default=0.0),
        sum(one.share for one in some),
        sum(one.sum for one in examined) / max(calls, 1),
    )


@dataclass(frozen=True, slots=True)
class StatementCell:
    """A class under a treatment as text; `ratio` is that of its mean time to the baseline's."""

    treatment: str
    mean: str
    ratio: str
    more: str


@dataclass(frozen=True, slots=True)
class StatementRow:
    """A class of statements, and what it did under each treatment."""

    fingerprint: str
    cells: Sequence[StatementCell]


def rows(result: Result, workload: str) -> list[StatementRow]:
    """Return the rows of the table of a workload."""
    named = treatments(result)
    return [
        StatementRow(one.fingerprint, [_cell(one, name, result) for name in named])
        for one in result.statements
        if one.workload == workload
    ]


def treatments(result: Result) -> list[str]:
    """Return the treatments that have left a slow log, the baseline first."""
    names = dict.fromkeys(name for one in result.statements for name in one.figures)
    return sorted(names, key=lambda name: name != result.comparison.baseline)


def workloads(result: Result) -> list[str]:
    """Return the workloads of which there are slow logs."""
    return list(dict.fromkeys(one.workload for one in result.statements))


def _cell(one: Statement, name: str, result: Result) -> StatementCell:
    own, base = one.figures.get(name), one.figures.get(result.comparison.baseline)
    if own is None:
        return StatementCell(name, units.NOTHING, "", "not in its logs")
    apart = base and name != result.comparison.baseline and base.mean_s > 0
    ratio = units.times(own.mean_s / base.mean_s) if apart and base else ""
    more = (
        f"p95 {units.quantity(own.p95_s, 's')}, {units.quantity(own.calls_per_s, '/s')}, "
        f"{units.quantity(own.share, 'share')} of time, "
        f"{units.quantity(own.rows, '')} rows examined"
    )
    return StatementCell(name, units.quantity(own.mean_s, "s"), ratio, more)
