"""The decision rule: responses, directions, guards and their limits."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from math import log, sqrt

from mydyno.stats.effects import Effect, ratio
from mydyno.stats.looks import Looks
from mydyno.stats.result import Ratio

HIGHER, LOWER = "higher", "lower"
DIRECTIONS = (HIGHER, LOWER)
THROUGHPUTS = ("tps", "qps", "iops")  # 0 means that the load did no work

_HIGHER = frozenset(
    {
        *THROUGHPUTS,
        "compression_ratio",
        "deliveries",
        "eps",
        "fsyncs",
        "new_orders",
        "order_statuses",
        "other",
        "payments",
        "read_bytes",
        "reads",
        "replica_speed_ratio",
        "runs",
        "stock_levels",
        "trims",
        "write_bytes",
        "writes",
    }
)
_LOWER = frozenset({"errors", "queue_length", "reconnects", "unfairness_ratio", "replica_lag_s"})


def known(metric: str) -> str | None:
    """Return ``"higher"`` or ``"lower"``, whichever is better, or None for an unknown metric."""
    if metric in _HIGHER:
        return HIGHER
    if metric in _LOWER or metric.startswith(("latency_", "storage_")) or metric.endswith("_logsd"):
        return LOWER
    return None


def is_lower(metric: str, declared: Collection[str] = ()) -> bool:
    """Return whether less of `metric` is better; `declared` are metrics of the spec.

    For a metric that is neither known nor declared, more is better: run directories of versions
    without declarations need that.
    """
    return metric in declared or known(metric) == LOWER


def always_works(metric: str, declared: Collection[str] = ()) -> bool:
    """Return whether 0 of `metric` means that no work was done, not that no error occurred."""
    return not is_lower(metric, declared) or metric.startswith("latency_")


CONFIDENCE = 0.95
FIRST = ""  # as a treatment's name: the first level of each factor
DEFAULT_GUARDS = {"latency_p99_s": 0.10, "{response}_logsd": 0.20}


class Estimator(Enum):
    """How trials become effects against the baseline."""

    BLOCKS = auto()  # means of windows, within blocks whose number was fixed before
    WINDOWS = auto()  # means of windows; treatments leave at planned looks
    STEADY = auto()  # levels of trials that may still have been warming up; valid in the same way


class Goal(Enum):
    """What a campaign is to find out."""

    EACH = auto()  # a verdict on each treatment
    BEST = auto()  # the best one: adopted treatments are measured until they differ from it
    FACTORS = auto()  # the effect of each factor; there is no verdict on a treatment


@dataclass(frozen=True, slots=True)
class Method:
    """How the trials of a design are evaluated; each design declares its own.

    Trials of blocks before `proving_from` are exploratory: they do not count as evidence for what
    they found.  `segment_s` is the length of trials, in seconds, for which one running server was
    switched between treatments; longer ones let it settle, and are measurements with
    `settling_counts`.  `guards_may_lack`: a guard that no trial measured blocks nothing.  The error
    is spent over the `looks` at which treatments may leave.
    """

    estimator: Estimator = Estimator.BLOCKS
    goal: Goal = Goal.EACH
    proving_from: int = 0
    segment_s: float | None = None
    guards_may_lack: bool = False
    settling_counts: bool = True
    looks: Looks = field(default_factory=Looks)


@dataclass(frozen=True, slots=True)
class Rule:
    """Decision rule: `responses` by workload, `guards` and `margin` as ratios.

    `lower` names the metrics that the spec declares better if lower; the direction of others
    follows from their names.  `bursts` names the treatments whose loads begin with burst credits,
    so that each of their trials may fall by itself.  `method` is that of the design.
    """

    name: str
    baseline: str
    responses: Mapping[str, str]
    margin: float = 0.03
    guards: Mapping[str, float] | None = None
    durability: Mapping[str, str] | None = None
    weaker_may_win: bool = False
    lower: Collection[str] = ()
    bursts: Collection[str] = ()
    method: Method = Method()

    def guards_of(self, workload: str) -> dict[str, float]:
        """Return the guards of one workload, its response's name filled in."""
        wanted = DEFAULT_GUARDS if self.guards is None else self.guards
        response = self.responses[workload]
        named = {name.replace("{response}", response): m for name, m in wanted.items()}
        # `tps_logsd` of a spec means the response of the workload, whatever its name
        return {f"{response}_logsd" if n == "tps_logsd" else n: m for n, m in named.items()}

    @property
    def guards_asked(self) -> bool:
        """Return whether the spec asks for the guards, so that they must be evaluated."""
        return self.guards is not None and not self.method.guards_may_lack

    def gain(self, effect_log: float, workload: str) -> float:
        """Return a log ratio as a log gain: negative if it is worse."""
        return -effect_log if is_lower(self.responses[workload], self.lower) else effect_log

    def direction(self, workload: str) -> str:
        """Return ``higher`` or ``lower``, whichever is better for a workload's response."""
        return LOWER if is_lower(self.responses[workload], self.lower) else HIGHER

    def class_of(self, treatment: str) -> str:
        """Return the treatment's durability class."""
        return (self.durability or {}).get(treatment, "same")


# By name: the ratio to the baseline (lower is better) and the margin that is allowed.
Guards = Mapping[str, tuple[Ratio, float]]

_UNSTABLE_RANGE = 0.30  # relative range of one treatment's trials (TUNA, EuroSys 2025)
_WIDE_SD = 2.0  # the same, of one whose range is so wide
_UNSTABLE_SD = 3.0  # own spread against that of the other treatments
_NOTABLE_SD = 0.10  # of log ratios: a smaller spread does not change the decision
_ENOUGH = 3
_SDS = 2.0  # to either side: this range holds nearly all seconds


def verdict(effect: Effect, margin: float, guards: Guards) -> str:
    """Return adopt, reject, equivalent or inconclusive for an effect on a higher-better response.

    A guard that is significantly broken rejects; one whose estimate is beyond the margin without
    significance makes the verdict inconclusive.
    """
    _, low, high = effect.interval
    if broken_guards(guards):
        return "reject" if low > 1 or high < 1 + margin else "inconclusive"
    if 1 / (1 + margin) < low and high < 1 + margin:
        return "equivalent"
    if effect.lower_bound > 0 and effect.log_ratio >= log(1 + margin) / 2:
        return "inconclusive" if _look_broken(guards) else "adopt"
    return "reject" if high < 1 + margin else "inconclusive"


def broken_guards(guards: Guards) -> Guards:
    """Return the guards that are significantly broken."""
    return {name: g for name, g in _look_broken(guards).items() if g[0].low > 1}


def unproven_guards(guards: Guards) -> Guards:
    """Return the guards that are not shown to be within their margins."""
    return {name: (g, margin) for name, (g, margin) in guards.items() if g.high >= 1 + margin}


def _look_broken(guards: Guards) -> Guards:
    return {name: (g, margin) for name, (g, margin) in guards.items() if g.ratio > 1 + margin}


def spread_is_harmless(gain: Effect, own_sd: float, baseline_sd: float) -> bool:
    """Return whether a larger spread of the response does no harm (ADR 0003).

    That is so if, at the low end of the gain's interval, the treatment's slow seconds still do more
    work than the baseline's fast ones; the spreads are standard deviations of logs.
    """
    return log(gain.interval[1]) > _SDS * (own_sd + baseline_sd)


def unstable(own: Sequence[float], others: Sequence[float]) -> bool:
    """Return whether the trials of one treatment differ more than trials of one configuration may.

    `own` are the log ratios of its trials to the baseline at that time, `others` the standard
    deviations of the other treatments'.  Either its relative range exceeds 30 %, and its spread is
    twice theirs, or that is three times theirs.
    """
    mine = spread(own)
    if mine is None:
        return False
    middle = sorted(own)[len(own) // 2]
    is_wide = ratio(max(own) - middle) - ratio(min(own) - middle) > _UNSTABLE_RANGE
    if not others:
        return is_wide
    usual = sqrt(sum(s * s for s in others) / len(others))
    if is_wide and mine > _WIDE_SD * usual:  # of many trials on an uneven host all are wide
        return True
    # with three trials and little noise elsewhere, 1 in 30 would be called unstable by chance
    return mine > max(_UNSTABLE_SD * usual, _NOTABLE_SD)


def spread(logs: Sequence[float]) -> float | None:
    """Return the standard deviation of at least three values, else None."""
    if len(logs) < _ENOUGH:
        return None
    mean = sum(logs) / len(logs)
    return sqrt(sum((v - mean) ** 2 for v in logs) / (len(logs) - 1))
