"""Switchback: one running server switched between treatments in short segments."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from mydyno.campaign.designs import (
    LEAST_BLOCKS,
    RESTART_S,
    SEQUENTIAL,
    SMALL_S,
    DesignKind,
    Fixed,
    PlanInput,
    Stop,
    TrialForecast,
    bias_of,
    look_at,
)
from mydyno.campaign.race import Race, race_of
from mydyno.model import Interval, Outcome, Reset, Trial, TrialStatus, Window
from mydyno.stack.layers import at_once
from mydyno.stats import Estimator, Method, Rule, tens

CHECKS = 1  # trials that come first, for the server to reach its steady state
WASHOUT_S, SEGMENT_S = 5.0, 30.0  # seconds dropped at its start; its length
SHORT_S = 10.0  # of a segment in a budget that holds too few of the usual ones
_SHORT_WASHOUT_S = 3.0
_RACED_S = 60.0  # of a trial of a race, at the least, where there is time for it
_SWITCH_S = 1.0  # what a switch takes, about
_SETTLING = 1 / 3  # the share of a short budget after which the first trial ends in any case
SHARE = 0.115  # of an hour for each treatment, without a budget
_SHORT_SETTLED_S = (20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 150.0, 180.0)
_SETTLED_S = (120.0, 180.0, 240.0, 300.0, 360.0, 420.0, 480.0, 540.0, 600.0, 720.0, 900.0)
_SEGMENTS_SD, _SHORT_SD = 0.05, 0.07  # standard deviation of segments (logs), usual and short
_BIAS = 0.002  # share of the warm-up that may remain when the first trial ends


def _often(arms: int) -> int:
    return max(1, round(arms / 3))


class Switchback(Race):
    """A race in segments of one running server, a quarter of them the baseline's."""

    def often(self, running: int) -> int:
        """Return how many segments of a block are the baseline's, for so many other treatments."""
        return _often(running)


@dataclass(frozen=True, slots=True)
class Segments:
    """A long trial first, then segments of the same short length.

    The first trial ends at one of `settled_s`, at the last one even where it has not settled.
    """

    responses: dict[str, str]
    lower: Collection[str] = field(default=(), repr=False)
    segment_s: float = SEGMENT_S
    washout_s: float = WASHOUT_S
    settled_s: tuple[float, ...] = _SETTLED_S
    label = SEQUENTIAL

    @property
    def short(self) -> bool:
        """Return whether segments are shorter than usual, for a small budget."""
        return self.segment_s < SEGMENT_S

    def method(self, method: Method) -> Method:
        """Return one of these segments; where little time was left to settle, that is not used."""
        return replace(method, segment_s=self.segment_s, settling_counts=not self.short)

    def forecast(self, overhead_s: float = RESTART_S) -> TrialForecast:
        """Return a segment; the first trial, which settles, is longer."""
        segment_s = self.segment_s + _SWITCH_S
        return TrialForecast(
            segment_s,
            _SHORT_SD if self.short else _SEGMENTS_SD,
            checked=False,
            least_s=segment_s,
            most_s=segment_s,
            first_s=self.settled_s[0] + overhead_s,
        )

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule of the trial that follows `history`: settle once, then segments."""
        bad = [n for n, o in enumerate(history, 1) if o.status is not TrialStatus.OK]
        since = history[max(bad, default=0) :]  # after a failure the server was restarted
        if any(o.trial.workload == trial.workload for o in since):
            return Fixed(self.washout_s, self.segment_s - self.washout_s)
        response = self.responses[trial.workload]
        return Settled(response, self.lower, self.segment_s, self.settled_s)


@dataclass(frozen=True, slots=True)
class Settled:
    """Ends a trial once almost no warm-up remains; its window is the last segment."""

    response: str
    lower: Collection[str] = ()
    segment_s: float = SEGMENT_S
    looks_s: tuple[float, ...] = _SETTLED_S

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the last segment when the server has settled, or at the last look."""
        look_s = look_at(intervals, self.looks_s)
        if look_s is None:
            return None
        from mydyno.stats.lengths import still_to_come  # noqa: PLC0415 - numpy

        so_far = tens(intervals, self.response)
        if look_s < self.looks_s[-1] and still_to_come(so_far, self.lower) > _BIAS:
            return None
        return Window(look_s - self.segment_s, look_s)


def _switchback(inputs: PlanInput, rule: Rule) -> Race:
    """Return the switchback; it gets a budget if the spec gives neither that nor blocks."""
    hot = replace(race_of(inputs, rule, Switchback), checks=CHECKS, reset=Reset.NONE)
    if inputs.blocks is not None or hot.budget_s is not None:
        return hot
    cells = len(hot.treatments) * len(hot.workloads)
    return replace(hot, blocks=None, budget_s=SHARE * 3600 * cells)


def switches(inputs: PlanInput) -> bool:
    """Return whether a budget is too small for restarts, and the settings need none.

    Every setting must show its effect within seconds, on a server that stays up.
    """
    spec, budget_s = inputs.spec, inputs.budget_s
    settings = [key for of in inputs.treatments.values() for key in of]
    hot = settings and all(at_once(key) for key in settings)
    served = all(workload.info.needs_server for workload in inputs.workloads.values())
    restarts = spec.protocol.bias is not None or spec.stack.replicated
    if budget_s is None or not hot or not served or restarts:
        return False
    return budget_s < _enough_trials(inputs) * (_RACED_S + RESTART_S)


def _enough_trials(inputs: PlanInput) -> int:
    """Return the number of segments in as many blocks as a budget must have room for."""
    arms = len(inputs.treatments) - 1
    return LEAST_BLOCKS * len(inputs.workloads) * (arms + _often(arms))


def _segments(inputs: PlanInput) -> Segments:
    unable = "trials of fixed length" if inputs.fixed else "a switchback, which warms up once,"
    bias_of(inputs, unable)
    usual = Segments(inputs.responses, inputs.lower)
    budget_s, cells = inputs.budget_s or inf, len(inputs.workloads)
    segments_s = _enough_trials(inputs) * (SEGMENT_S + _SWITCH_S)
    needed_s = cells * (_SETTLED_S[0] + RESTART_S) + segments_s
    if budget_s >= min(needed_s, SMALL_S):
        return usual
    last_s = max(_SETTLING * budget_s / cells, 2 * SHORT_S)
    looks = [s for s in _SHORT_SETTLED_S if s <= last_s] or [_SHORT_SETTLED_S[0]]
    return replace(usual, segment_s=SHORT_S, washout_s=_SHORT_WASHOUT_S, settled_s=tuple(looks))


SWITCHBACK = DesignKind(
    "a switchback: one running server is switched between treatments every half minute, or every "
    "ten seconds in a small budget; a quarter of the segments or more are the baseline's",
    _switchback,
    _segments,
    Method(Estimator.WINDOWS, segment_s=SEGMENT_S),
)
