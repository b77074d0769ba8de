"""What a design is and declares: the next trial as a pure function of the finished ones."""

import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import log1p
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from mydyno.campaign.spec import DeviceTable, Spec
from mydyno.campaign.treatments import Environment, levels_of, numbered
from mydyno.loads import Workload
from mydyno.model import (
    Cost,
    Interval,
    Outcome,
    Reset,
    Series,
    Settings,
    SpecError,
    Trial,
    Window,
    unknown_value,
)
from mydyno.model.text import duration_s
from mydyno.stack.layers import cost_of
from mydyno.stats import Estimator, Method, Rule, tens
from mydyno.stats.effects import DEFAULT_TRIAL_SD, TRIAL_S, Size, noise_of

if TYPE_CHECKING:
    from mydyno.stats.lengths import Lengths, Terms


SMALL_S = 1800.0  # a smaller budget holds few blocks
RESTART_S = 20.0  # what a trial costs besides its load, until one has been seen
_PROTOCOLS = ("sequential", "fixed")
_WARMUP_S = _WINDOW_S = 60.0


class Stop(Protocol):
    """Ends a trial when its measured window is complete."""

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the measured window once it is complete, else None."""
        ...


@dataclass(frozen=True, slots=True)
class TrialForecast:
    """What is assumed of a trial before one is measured.

    `seconds` is its length with its overhead, from `least_s` to `most_s`; `noise_sd` the standard
    deviation of trials of one treatment (logs), `load_s` the time under load where that is fixed.
    `first_s` is the length of the first trial where that differs.  `checked`: the first trials
    measure all of this.
    """

    seconds: float
    noise_sd: float = DEFAULT_TRIAL_SD
    load_s: float | None = None
    checked: bool = True
    least_s: float | None = None
    most_s: float | None = None
    first_s: float | None = None


class Stops(Protocol):
    """Gives each trial its stop rule, as a function of the earlier trials only."""

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule of the trial that follows `history`."""
        ...

    def method(self, method: Method) -> Method:
        """Return how trials that end so are evaluated, in a design of this method."""
        ...

    @property
    def label(self) -> str:
        """Return how trials end, in a sentence for the report."""
        ...

    def forecast(self, overhead_s: float = RESTART_S) -> TrialForecast:
        """Return what is assumed of a trial before one is measured.

        `overhead_s` is what it takes besides its load: a restart, and restoring its data.
        """
        ...


SEQUENTIAL = "sequential: the length of each trial, and its measured window, are chosen as it runs"


@dataclass(frozen=True, slots=True)
class Fixed:
    """A warm-up and a window of fixed lengths, in seconds."""

    warmup_s: float
    window_s: float

    @property
    def label(self) -> str:
        """Return both lengths."""
        return f"fixed: {self.warmup_s:g} s of warm-up, then {self.window_s:g} s measured"

    def method(self, method: Method) -> Method:
        """Return the design's own: the spec gives the warm-up."""
        return method

    def forecast(self, overhead_s: float = RESTART_S) -> TrialForecast:
        """Return the lengths, and the overhead."""
        load_s = self.warmup_s + self.window_s
        return TrialForecast(load_s + overhead_s, load_s=load_s)

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the same rule for all trials."""
        del trial, history
        return self

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the window once the last interval has reached its end."""
        window = Window(self.warmup_s, self.warmup_s + self.window_s)
        return window if intervals and window.reached(intervals[-1].t_s) else None


def seed_of(first: int, number: int, block: int, reset: Reset) -> int:
    """Return the seed of a campaign's trial `number` in `block`; `first` is the campaign's.

    Trials of a block share a seed, so that its treatments have the same load.  Where the server
    keeps running, each trial has its own: with the same rows, later trials would find them cached.
    """
    return first + (number if reset is Reset.NONE else block)


Cell = tuple[str, str]  # workload, treatment


def plots(treatments: Mapping[str, Settings], *, one_device: bool) -> Mapping[str, str]:
    """Return the whole plot of each treatment: its levels of the hard-to-change factors.

    These cost a reboot or, with `one_device`, which holds one data set at a time, another data set.
    A lab holds all data sets at once.
    """
    hard_to_change = {Cost.REBOOT, Cost.REFORMAT} if one_device else {Cost.REBOOT}
    return {
        name: repr(sorted((k, v) for k, v in settings.items() if cost_of(k) in hard_to_change))
        for name, settings in treatments.items()
    }


def exceeds(budget_s: float | None, history: Sequence[Outcome], trials: int) -> bool:
    """Return whether so many trials more would exceed a budget, at their usual cost: none begin."""
    if budget_s is None:
        return False
    return spent(history) + trials * median(o.machine_time_s for o in history) > budget_s


def spent(history: Iterable[Outcome]) -> float:
    """Return the machine time of these trials in seconds."""
    return sum(outcome.machine_time_s for outcome in history)


def exhausted(budget_s: float | None, history: Sequence[Outcome]) -> bool:
    """Return whether trials have used a budget up: no other one is begun, whatever its block."""
    return budget_s is not None and spent(history) >= budget_s


def grouped(order: Sequence[Cell], of: Mapping[str, str], chance: random.Random) -> list[Cell]:
    """Return a block's trials grouped by whole plot, the plots in random order.

    The order is drawn again for every block, so that the random effect of a reboot differs between
    a treatment's trials and is part of their variance (Yates, 1935, for the design).
    """
    found = list(dict.fromkeys(of.get(treatment, "") for _, treatment in order))
    chance.shuffle(found)
    return sorted(order, key=lambda cell: found.index(of.get(cell[1], "")))


class Design(Protocol):
    """Decides the next trial from those already finished, and from nothing else."""

    @property
    def blocks(self) -> int | None:
        """Return the largest number of blocks, or None if it is not fixed."""
        ...

    @property
    def budget_s(self) -> float | None:
        """Return the machine time in seconds after which it ends, if there is one."""
        ...

    @property
    def total(self) -> int | None:
        """Return the number of trials where that is fixed and known, unless the budget ends it."""
        ...

    @property
    def size(self) -> Size | None:
        """Return what a forecast needs, or None if there is none."""
        ...

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the trial to run after `history`, or None when the design is complete."""
        ...


@dataclass(frozen=True, slots=True)
class PlanInput:
    """A spec with its names resolved; errors name `place`.

    `lower` names the responses for which lower is better.
    """

    spec: Spec
    place: str
    treatments: Mapping[str, Settings]
    baseline: str
    workloads: Mapping[str, Workload]
    environment: Environment
    lower: frozenset[str] = frozenset()

    @property
    def responses(self) -> dict[str, str]:
        """Return the response of each workload."""
        return {name: w.info.response for name, w in self.workloads.items()}

    @property
    def cells(self) -> dict[str, tuple[int, ...]]:
        """Return the levels of each treatment that has the spec's factors, numbered by factor."""
        levels = {name: levels_of(own, self.spec) for name, own in self.treatments.items()}
        return numbered({n: of for n, of in levels.items() if len(of) == len(self.spec.factors)})

    @property
    def blocks(self) -> int | None:
        """Return the number of blocks that the spec gives; raise `SpecError` below 1."""
        spec = self.spec
        blocks = spec.design.blocks if spec.design.blocks is not None else spec.protocol.blocks
        if blocks is not None and blocks < 1:
            raise SpecError(
                f"{self.place}: blocks = {blocks}: must be at least 1, and 2 for a verdict"
            )
        return blocks

    @property
    def budget_s(self) -> float | None:
        """Return the budget in seconds of machine time, if the spec gives one."""
        budget = self.spec.design.budget
        return duration_s(budget, f"{self.place}: design.budget") if budget else None

    @property
    def reset(self) -> Reset:
        """Return what is restored before a trial; raise `SpecError` for an unknown word."""
        named = self.spec.protocol.reset
        try:
            return Reset(named)
        except ValueError as error:
            problem = unknown_value(named, [r.value for r in Reset])
            raise SpecError(f"{self.place}: protocol.reset: {problem}") from error

    @property
    def plots(self) -> Mapping[str, str]:
        """Return the whole plot of each treatment on the spec's device."""
        device = self.spec.stack.device
        one = device.machine if isinstance(device, DeviceTable) else device != "here"
        return plots(self.treatments, one_device=one)

    @property
    def fixed(self) -> Fixed | None:
        """Return the fixed lengths that the spec gives, if any; raise `SpecError` if invalid."""
        protocol, place = self.spec.protocol, self.place
        settled = protocol.warmup_s is not None or protocol.window_s is not None
        kind = protocol.kind or ("fixed" if settled else "sequential")
        if kind not in _PROTOCOLS:
            raise SpecError(f"{place}: protocol.kind: {unknown_value(kind, _PROTOCOLS)}")
        if kind == "sequential" and settled:
            raise SpecError(
                f"{place}: protocol.kind: sequential chooses warm-up and window itself; remove "
                'protocol.warmup_s and protocol.window_s, or set kind = "fixed"'
            )
        if kind == "sequential":
            return None
        warmup_s = _WARMUP_S if protocol.warmup_s is None else protocol.warmup_s
        window_s = _WINDOW_S if protocol.window_s is None else protocol.window_s
        if warmup_s < 0 or window_s <= 0:
            raise SpecError(
                f"{place}: protocol: warmup_s must be 0 or more, window_s above 0, in seconds"
            )
        return Fixed(warmup_s, window_s)


Grid = Mapping[str, dict[str, Any]]
"""The settings of cells by name, as the spec writes them."""


def all_cells(spec: Spec, place: str, grid: Callable[[], Grid]) -> Grid:
    """Return the complete grid."""
    del spec, place
    return grid()


ANYTIME = Method(Estimator.WINDOWS)


@dataclass(frozen=True, slots=True)
class DesignKind:
    """What a design declares.

    `label` describes it in the plan.  `make` returns the design, and raises `SpecError` where the
    spec does not suit it.  `stops` gives the rule that ends its trials.  `method` is how they
    are evaluated, unless its `stops` ask for another: by default intervals hold over all looks,
    as treatments leave by what was seen.
    `select` returns the cells of the factors' grid that it runs, `more` treatments that the spec
    has not.  `runs` is False where no trial follows; `alone`: it takes one treatment.
    """

    label: str
    make: Callable[[PlanInput, Rule], Design]
    stops: Callable[[PlanInput], Stops]
    method: Method = ANYTIME
    select: Callable[[Spec, str, Callable[[], Grid]], Grid] = all_cells
    more: Callable[[PlanInput], Mapping[str, Settings]] = lambda _: {}
    runs: bool = True
    alone: bool = False


_WARM = 6  # a level at the end of a warm-up varies as the mean of so small a part of its trial
_FIRST = 0.1  # the first share of it is not measured


@dataclass(frozen=True, slots=True)
class Soak:
    """One long trial of the winner under the first load, if there is a winner."""

    seconds: float
    winner: Callable[[Sequence[Outcome]], str | None] = field(repr=False)

    @property
    def stop(self) -> Fixed:
        """Return the stop rule of its trial."""
        return Fixed(_FIRST * self.seconds, (1 - _FIRST) * self.seconds)

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the soak trial that follows a design's last trial, or None after it."""
        if not history or any(o.trial.soak for o in history):
            return None
        winner, first, last = self.winner(history), history[0].trial, history[-1].trial
        if winner is None:
            return None
        return replace(
            last, id=last.id + 1, treatment=winner, workload=first.workload, block=last.block + 1,
            seed=first.seed, soak=True,
        )  # fmt: skip


_SLACK_S = 0.05
LEAST_BLOCKS = 6  # a budget must have room for so many blocks


@dataclass(frozen=True)
class Adaptive:
    """Plans each trial's length from those before it; `responses` by workload.

    `most_s` is the longest a trial may take, overhead included, if it is limited; `margin` is that
    of the decision, a ratio less one; `bias` is the share of the level that the warm-up may still
    contribute at a trial's end; `lower` names the metrics for which lower is better.  `alone`: each
    treatment has one trial.
    """

    responses: Mapping[str, str]
    most_s: float | None = None
    margin: float = 0.03
    bias: float | None = None
    lower: Collection[str] = field(default=(), repr=False)
    alone: bool = field(default=False, repr=False)
    label = SEQUENTIAL

    @cached_property
    def _known(self) -> dict[tuple[str, int], "Lengths"]:
        """A cache: a function of the trials so far that is expensive to compute."""
        return {}

    def method(self, method: Method) -> Method:
        """Return one that estimates steady levels: trials may still be warming up at their ends."""
        return replace(method, estimator=Estimator.STEADY)

    def forecast(self, overhead_s: float = RESTART_S) -> TrialForecast:
        """Return the usual length, or what the bias and the budget make of it."""
        from mydyno.stats.lengths import (  # noqa: PLC0415 - numpy
            BIAS,
            LENGTHS_S,
            Terms,
            longest_s,
            unlearned_s,
        )

        usual_s = Terms().most_s if self.most_s is None else self.most_s - overhead_s
        least_s = unlearned_s(self.bias or BIAS)
        most_s = longest_s(usual_s, least_s)
        least_s = least_s if least_s <= most_s else LENGTHS_S[0]
        usual_s = min(max(TRIAL_S - RESTART_S, least_s), most_s)
        return TrialForecast(
            usual_s + overhead_s,
            noise_of(usual_s / _WARM),
            least_s=least_s + overhead_s,
            most_s=most_s + overhead_s,
        )

    def of(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule of the trial that follows `history`, the same in a resumed campaign."""
        from mydyno.stats.lengths import lengths, longer  # noqa: PLC0415
        from mydyno.stats.sequential import training_size  # noqa: PLC0415

        response = self.responses[trial.workload]
        mine = [o for o in history if o.trial.workload == trial.workload]
        seen = [o for o in mine if _series([o], response)]
        learned = seen[: training_size(len(seen))]
        if (trial.workload, len(learned)) not in self._known:
            before = [o for o in history if learned and o.trial.id <= learned[-1].trial.id]
            found = lengths(_series(learned, response), self._terms(before))
            self._known[trial.workload, len(learned)] = found
        own = _series([o for o in mine if o.trial.treatment == trial.treatment], response)
        return Enough(response, longer(self._known[trial.workload, len(learned)], own))

    def _terms(self, history: Sequence[Outcome]) -> "Terms":
        from mydyno.stats.lengths import BIAS, LENGTHS_S, Terms  # noqa: PLC0415

        besides_s = overhead_s(history)
        most_s = LENGTHS_S[-1] if self.most_s is None else self.most_s - besides_s
        bias, lower = self.bias or BIAS, frozenset(self.lower)
        return Terms(besides_s, most_s, log1p(self.margin), bias, lower, self.alone)


@dataclass(frozen=True, slots=True)
class Enough:
    """Ends one trial at the first of some lengths after which more time is not worth it."""

    response: str
    lengths: "Lengths"

    def done(self, intervals: Sequence[Interval]) -> Window | None:
        """Return the measured window, which begins after the estimated warm-up."""
        if look_at(intervals, self.lengths.looks_s) is None:
            return None
        return self.lengths.window(tens(intervals, self.response))


def look_at(intervals: Sequence[Interval], looks_s: Sequence[float]) -> float | None:
    """Return the last of these times, in s, that the last interval has reached, if any.

    One interval of a load that reports seldom reaches several.
    """
    ends_s = [0.0, *(i.t_s + _SLACK_S for i in intervals[-2:])]
    reached = [s for s in looks_s if ends_s[-2] < s <= ends_s[-1]] if intervals else []
    return max(reached, default=None)


def _series(outcomes: Sequence[Outcome], response: str) -> list[Series]:
    """Return the series of the trials that did any work."""
    every = [s for o in outcomes for s in o.series if s.name == response]
    return [s for s in every if any(value > 0 for value in s.values)]


def overhead_s(history: Sequence[Outcome]) -> float:
    """Return the median overhead of a trial in seconds: machine time besides the load."""
    costs = [max(o.machine_time_s - o.window.end_s, 0.0) for o in history if o.window.end_s > 0]
    return median(costs) if costs else RESTART_S


def trial_lengths(inputs: PlanInput, most_s: float | None = None) -> Stops:
    """Return the fixed lengths of a spec, or those planned from earlier trials.

    `most_s` is the longest trial in seconds; without it a budget must have room for a few blocks.
    """
    fixed, budget_s = inputs.fixed, inputs.budget_s
    bias = bias_of(inputs, "trials of fixed length" if fixed else "")
    if most_s is None and budget_s is not None:
        most_s = budget_s / (LEAST_BLOCKS * len(inputs.treatments) * len(inputs.workloads))
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
