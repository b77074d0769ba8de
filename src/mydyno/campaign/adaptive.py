"""Trial lengths chosen from earlier trials, so that machine time is used best."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf, log1p
from typing import TYPE_CHECKING

from mydyno.campaign.designs import (
    RESTART_S,
    SEQUENTIAL,
    PlanInput,
    Stop,
    Stops,
    TrialForecast,
)
from mydyno.model import Interval, Outcome, Series, SpecError, Trial, Window
from mydyno.stats import tens
from mydyno.stats.forecast import TRIAL_S

if TYPE_CHECKING:
    from mydyno.stats.lengths import Lengths, Terms


_SLACK_S = 0.05
_LEAST_BLOCKS = 4  # a budget must have room for so many blocks


@dataclass(frozen=True)
class Adaptive:
    """Plans each trial's length from those before it; `responses` by workload.

    `most_s` is the longest a trial may take, overhead included, if it is limited; `margin` is that
    of the decision, a ratio less one; `bias` is the share of the level that the warm-up may still
    contribute at a trial's end; `lower` names the metrics for which lower is better.
    """

    responses: Mapping[str, str]
    most_s: float | None = None
    margin: float = 0.03
    bias: float | None = None
    lower: Collection[str] = field(default=(), repr=False)
    # A cache: a function of the trials so far that is expensive to compute.
    _known: dict[tuple[str, int], "Lengths"] = field(default_factory=dict, repr=False)

    @property
    def warming(self) -> bool:
        """Return True: a trial ends by what was seen."""
        return True

    @property
    def label(self) -> str:
        """Return that lengths are chosen."""
        return SEQUENTIAL

    def forecast(self) -> TrialForecast:
        """Return the usual length, or what the bias and the budget make of it."""
        return TrialForecast(min(max(TRIAL_S, self._waited_s()), self.most_s or inf))

    def _waited_s(self) -> float:
        """Return the least length of a trial in s, if the spec sets a bias."""
        if self.bias is None:
            return 0.0
        from mydyno.stats.lengths import unlearned_s  # noqa: PLC0415 - numpy and scipy

        return unlearned_s(self.bias) + RESTART_S

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule of the trial that follows `history`."""
        from mydyno.stats.lengths import lengths, longer, training_trials  # noqa: PLC0415

        response = self.responses[trial.workload]
        mine = [o for o in history if o.trial.workload == trial.workload]
        seen = _series(mine, response)
        count = training_trials(len(seen))
        if (trial.workload, count) not in self._known:
            self._known[trial.workload, count] = lengths(seen[:count], self._terms(history))
        own = _series([o for o in mine if o.trial.treatment == trial.treatment], response)
        return Enough(response, longer(self._known[trial.workload, count], own))

    def _terms(self, history: Sequence[Outcome]) -> "Terms":
        from mydyno.stats.lengths import BIAS, Terms  # noqa: PLC0415

        overhead_s = _overhead_s(history)
        terms = Terms(
            overhead_s,
            margin_log=log1p(self.margin),
            bias=self.bias or BIAS,
            lower=frozenset(self.lower),
        )
        return terms if self.most_s is None else replace(terms, most_s=self.most_s - overhead_s)


@dataclass(frozen=True, slots=True)
class Enough:
    """Ends one trial at the first of some lengths after which more time is not worth it."""

    response: str
    lengths: "Lengths"

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the measured window, which begins after the estimated warm-up."""
        if not intervals:
            return None
        now_s = intervals[-1].t_s + _SLACK_S
        before_s = intervals[-2].t_s + _SLACK_S if len(intervals) > 1 else 0.0
        if not any(before_s < s <= now_s for s in self.lengths.looks_s):
            return None
        return self.lengths.window(tens(intervals, self.response))


def _series(outcomes: Sequence[Outcome], response: str) -> list[Series]:
    """Return the series of the trials that did any work."""
    every = [s for o in outcomes for s in o.series if s.name == response]
    return [s for s in every if any(value > 0 for value in s.values)]


def _overhead_s(history: Sequence[Outcome]) -> float:
    """Return the mean overhead of a trial in seconds: machine time besides the load."""
    loads: list[tuple[Outcome, Series]] = [(o, s) for o in history for s in o.series[:1] if s.t_s]
    costs = [max(o.machine_time_s - s.t_s[-1], 0.0) for o, s in loads]
    return sum(costs) / len(costs) if costs else RESTART_S


def trial_lengths(inputs: PlanInput, most_s: float | None = None) -> Stops:
    """Return the fixed lengths of a spec, or those planned from earlier trials.

    `most_s` is the longest trial in seconds; without it a budget must have room for a few blocks.
    """
    fixed, budget_s = inputs.fixed, inputs.budget_s
    bias = bias_of(inputs, "trials of fixed length" if fixed else "")
    if most_s is None and budget_s is not None:
        most_s = budget_s / (_LEAST_BLOCKS * len(inputs.treatments) * len(inputs.workloads))
    margin = inputs.spec.decide.margin
    return fixed or Adaptive(inputs.responses, most_s, margin, bias, inputs.lower)


def bias_of(inputs: PlanInput, unable: str = "") -> float | None:
    """Return the share of a warm-up that may remain at a trial's end, if the spec limits it.

    Raises `SpecError` for an invalid one, or where trials are `unable` to limit it.
    """
    bias = inputs.spec.protocol.bias
    if bias is None:
        return None
    if unable:
        raise SpecError(f"{inputs.place}: protocol.bias: {unable} cannot limit it; remove the key")
    if not 0 < bias < 1:
        raise SpecError(
            f"{inputs.place}: protocol.bias = {bias:g}: must be a ratio above 0 and below 1, "
            "for example 0.0025"
        )
    return bias
