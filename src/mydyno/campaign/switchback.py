"""Switchback: one running server switched between treatments in short segments."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace

from mydyno.campaign.designs import (
    SEQUENTIAL,
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
from mydyno.stats import Estimator, Method, Rule, tens

CHECKS = 1  # trials that come first, for the server to reach its steady state
WASHOUT_S, SEGMENT_S = 5.0, 30.0  # seconds dropped at its start; its length
SHARE = 0.115  # of an hour for each treatment, without a budget
_SETTLED_S = (120.0, 180.0, 240.0, 300.0, 360.0, 420.0, 480.0, 540.0, 600.0, 720.0, 900.0)
_SEGMENTS_SD = 0.05  # standard deviation of segments (logs)
_BIAS = 0.002  # share of the warm-up that may remain when the first trial ends


class Switchback(Race):
    """A race in segments of one running server, a quarter of them the baseline's."""

    def often(self, running: int) -> int:
        """Return how many segments of a block are the baseline's, for so many other treatments."""
        return round(running / 3)


@dataclass(frozen=True, slots=True)
class Segments:
    """A long trial first, then segments of the same short length."""

    responses: dict[str, str]
    lower: Collection[str] = field(default=(), repr=False)

    warming = False  # the server has settled before the segments begin
    label = SEQUENTIAL

    def forecast(self) -> TrialForecast:
        """Return a segment; the first trial, which settles, is longer and measures nothing."""
        return TrialForecast(SEGMENT_S, _SEGMENTS_SD, checked=False)

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule of the trial that follows `history`: settle once, then segments."""
        settled = any(
            o.trial.workload == trial.workload and o.status is TrialStatus.OK for o in history
        )
        # after a failure the server was restarted
        broken = history and history[-1].status is not TrialStatus.OK
        if settled and not broken:
            return Fixed(WASHOUT_S, SEGMENT_S - WASHOUT_S)
        return Settled(self.responses[trial.workload], self.lower)


@dataclass(frozen=True, slots=True)
class Settled:
    """Ends a trial once almost no warm-up remains; its window is the last segment."""

    response: str
    lower: Collection[str] = ()

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the last segment when the server has settled, or after a quarter of an hour."""
        look_s = look_at(intervals, _SETTLED_S)
        if look_s is None:
            return None
        from mydyno.stats.lengths import still_to_come  # noqa: PLC0415 - numpy

        so_far = tens(intervals, self.response)
        if look_s < _SETTLED_S[-1] and still_to_come(so_far, self.lower) > _BIAS:
            return None
        return Window(look_s - SEGMENT_S, look_s)


def _switchback(inputs: PlanInput, rule: Rule) -> Race:
    """Return the switchback; it gets a budget if the spec gives neither that nor blocks."""
    hot = replace(race_of(inputs, rule, Switchback), checks=CHECKS, reset=Reset.NONE)
    if inputs.blocks is not None or hot.budget_s is not None:
        return hot
    cells = len(hot.treatments) * len(hot.workloads)
    return replace(hot, blocks=None, budget_s=SHARE * 3600 * cells)


def _segments(inputs: PlanInput) -> Segments:
    unable = "trials of fixed length" if inputs.fixed else "a switchback, which warms up once,"
    bias_of(inputs, unable)
    return Segments(inputs.responses, inputs.lower)


SWITCHBACK = DesignKind(
    "a switchback: one running server is switched between treatments every half minute; a quarter "
    "of the segments are the baseline's",
    _switchback,
    _segments,
    Method(Estimator.WINDOWS, segment_s=SEGMENT_S),
)
