"""The dot plot: the response of every single trial, to show the raw repeats."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mydyno.analyse.result import TrialView
from mydyno.report import units
from mydyno.report.axis import Axis, linear
from mydyno.report.plot import Style, Tick, ticks


@dataclass(frozen=True, slots=True)
class Dot:
    """One trial: where its response stands, its height in the row by block, and its tooltip."""

    x: float
    y: float
    label: str


@dataclass(frozen=True, slots=True)
class DotRow:
    """One treatment's trials and their geometric mean; `lost` counts those without a value."""

    style: Style
    dots: tuple[Dot, ...]
    mean: float | None
    lost: int


@dataclass(frozen=True, slots=True)
class DotPlot:
    """All treatments under one workload on a shared axis."""

    ticks: tuple[Tick, ...]
    rows: tuple[DotRow, ...]
    spread: str  # the sentence about the repeats


def plot(
    trials: Sequence[TrialView], styles: Sequence[Style], response: str, unit: str
) -> DotPlot | None:
    """Return one workload's trials, or None if none of them has a response."""
    values = [t.metrics[response] for t in trials if _counts(t, response)]
    if not values:
        return None
    room = 0.08 * (max(values) - min(values) or max(values))
    axis = linear(max(min(values) - room, 0.0), max(values) + room, 5)
    trials = [t for t in trials if not t.soak]
    named = {s.name: [t for t in trials if t.treatment == s.name] for s in styles}
    rows = [_row(s, named[s.name], axis, (response, unit)) for s in styles if named[s.name]]
    return DotPlot(ticks(axis, unit), tuple(rows), _spread(named, response))


def _row(style: Style, trials: Sequence[TrialView], axis: Axis, shown: tuple[str, str]) -> DotRow:
    response, unit = shown
    good = [t for t in trials if _counts(t, response)]
    last = max((t.block for t in trials), default=0)
    dots = tuple(
        Dot(
            axis.at(t.metrics[response]),
            round(100 * (t.block + 1) / (last + 2), 1),
            f"{style.name}, block {t.block + 1}, trial {t.id}: "
            f"{units.quantity(t.metrics[response], unit)}",
        )
        for t in good
    )
    mean = _geometric([t.metrics[response] for t in good])
    return DotRow(style, dots, None if mean is None else axis.at(mean), len(trials) - len(good))


def _counts(trial: TrialView, response: str) -> bool:
    value = trial.metrics.get(response)
    return trial.status == "ok" and not trial.soak and value is not None and math.isfinite(value)


def _geometric(values: Sequence[float]) -> float | None:
    if not values or min(values) <= 0:
        return sum(values) / len(values) if values else None
    return math.exp(sum(math.log(v) for v in values) / len(values))


def _spread(named: dict[str, list[TrialView]], response: str) -> str:
    """Return how much the repeats of one treatment differ, for the treatment where it is most."""
    spans = []
    for name, trials in named.items():
        values = [t.metrics[response] for t in trials if _counts(t, response)]
        if len(values) > 1 and min(values) > 0:
            spans.append((max(values) / min(values) - 1, name))
    if not spans:
        return "Each treatment ran once, so repeatability is not known."
    most, name = max(spans)
    return f"Repeats of one treatment differ by at most {units.share(round(most, 3))} ({name})."
