"""What a campaign's trials say under one workload, before any verdict."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite, log

from mydyno.analyse.contrasts import Effect
from mydyno.analyse.criteria import spread
from mydyno.model import Outcome, Status


@dataclass(frozen=True, slots=True)
class Estimates:
    """Effects by treatment, of the response and of each guard by metric; all by log ratio.

    `values` holds each treatment's log responses, one for each trial; `spreads` how its trials
    differ among themselves, as logs, and `sds` their standard deviations; `unsteady` the treatments
    that come to no steady state, `wavering` those of which that is not ruled out yet.  `carries`
    says that hot switches had not taken hold when they were measured.
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
    """Return the log of a metric of a trial that went well, None where it has none.

    Zero has none: as a response it is an outcome of its own (`mydyno.analyse.ends`), as a guard it
    is counted there too (`mydyno.analyse.guards`).
    """
    value = metric_of(outcome, metric)
    if outcome.status is not Status.OK or value is None or not isfinite(value):
        return None
    return log(value) if value > 0 else None


def metric_of(outcome: Outcome, metric: str) -> float | None:
    """Return the value of a metric, None where the trial has none."""
    return next((m.value for m in outcome.metrics if m.name == metric), None)
