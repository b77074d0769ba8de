"""Trial lengths chosen from earlier trials, so that machine time is used best."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log1p
from typing import TYPE_CHECKING

from mydyno.campaign.designs import Stop
from mydyno.model import Interval, Outcome, Series, Trial, Window
from mydyno.stats import tens

if TYPE_CHECKING:
    from mydyno.stats.lengths import Lengths, Terms


_SLACK_S = 0.05
_OVERHEAD_S = 20.0  # what a trial costs besides its load, until one has been seen


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
    return sum(costs) / len(costs) if costs else _OVERHEAD_S
