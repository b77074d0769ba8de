"""Estimates from a campaign's trials under one workload, before any verdict."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, log

from mydyno.analyse.contrasts import Effect
from mydyno.analyse.criteria import spread
from mydyno.model import Outcome, Status


@dataclass(frozen=True, slots=True)
class Estimates:
    """Effects by treatment, of the response and of each guard by metric; all by log ratio.

    `values` holds each treatment's log responses, one for each trial; `spreads` the residuals of
    its trials, as logs, and `sds` their standard deviations; `unsteady` the treatments without a
    steady state, `wavering` those for which that is not ruled out yet.  `carries` is true if the
    previous treatment carries over into the measured segments.
    """

    effects: Mapping[str, Effect] = field(default_factory=dict)
    guards: Mapping[str, Mapping[str, Effect]] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    spreads: Mapping[str, Sequence[float]] = field(default_factory=dict)
    unsteady: Collection[str] = ()
    wavering: Collection[str] = ()
    carries: bool = False
    sds: Mapping[str, float] = field(init=False)

    def __post_init__(self) -> None:
        found = {name: spread(logs) for name, logs in self.spreads.items()}
        known = {name: sd for name, sd in found.items() if sd is not None}
        object.__setattr__(self, "sds", known)


def log_of(outcome: Outcome, metric: str) -> float | None:
    """Return the log of a metric of a good trial, None if it has none.

    Zero has no log; it is counted separately, for responses in `mydyno.analyse.ends` and for
    guards in `mydyno.analyse.guards`.
    """
    value = metric_of(outcome, metric)
    if outcome.status is not Status.OK or value is None or not isfinite(value):
        return None
    return log(value) if value > 0 else None


def metric_of(outcome: Outcome, metric: str) -> float | None:
    """Return the value of a metric, None where the trial has none."""
    return next((m.value for m in outcome.metrics if m.name == metric), None)
