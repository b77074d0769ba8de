"""What a campaign takes and what it can show, by the arithmetic that ends its trials and blocks."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf, log, log1p, sqrt
from statistics import fmean

from mydyno.campaign.designs import Design, TrialForecast
from mydyno.campaign.plan import Campaign
from mydyno.campaign.spec import toml
from mydyno.model import Outcome, TrialStatus
from mydyno.stats import Estimator, Goal
from mydyno.stats.effects import Size, expected_sd, needed_blocks, ratio, reach
from mydyno.stats.estimates import log_of

_FEWEST = 2  # blocks before any decision
_FEWEST_DF = 6  # degrees of freedom that show how noisy trials are
_NOISES = (0.05, 20.0)  # times what is assumed: beyond, something else was wrong
_PREPARE_S = 40.0  # until data sets of such a load were made here
_OVERHEAD_S = 8.0  # of a trial: a small data set restored, a server started and stopped
_ASSUMED = (0.1, 6.0)  # of an assumed cost: the least and the most it usually turns out to be
_MEASURED = (0.5, 2.0)  # ... and of one that was measured here before


@dataclass(frozen=True, slots=True)
class Costs:
    """What a campaign costs besides its load, in seconds.

    `overhead_s` is that of each trial, `prepare_s` comes once; `measured` where they were measured
    on this host, and not assumed.  `noise` is how noisy the trials of an earlier campaign here
    were, over what had been forecast.
    """

    overhead_s: float = _OVERHEAD_S
    prepare_s: float = _PREPARE_S
    measured: bool = False
    noise: float | None = None

    @property
    def within(self) -> tuple[float, float]:
        """Return the factors between which the costs usually are."""
        return _MEASURED if self.measured else _ASSUMED


@dataclass(frozen=True, slots=True)
class Schedule:
    """Machine time in seconds, preparation included: the earliest end, the expected, the latest.

    `trials` and `blocks` are the expected ones, if no treatment leaves early and no trial is
    disturbed; the trials of a ladder's second phase are among them, its blocks are not.  `spare` is
    the most trials that repeat disturbed ones.  `detectable` is the ratio above 1
    that they show in four of five campaigns, infinite for none; `needed` blocks would show the
    margin.  Both are None where
    a design has no forecast.  `noise_sd` and `trial_s` are what was assumed of a trial, or measured
    by the check trials.
    """

    trials: int | None
    blocks: int | None
    earliest_s: float | None
    expected_s: float | None
    latest_s: float | None
    detectable: float | None
    needed: int | None
    noise_sd: float
    trial_s: float
    spare: int = 0

    def shows(self, margin: float) -> bool:
        """Return whether the margin can be shown, as far as that is known."""
        return self.detectable is None or self.detectable <= 1 + margin


def schedule(
    campaign: Campaign, costs: Costs, seen: Sequence[Outcome] = (), *, shown: bool = True
) -> Schedule:
    """Return what a campaign takes, assumed until the good check trials in `seen` show it.

    Without `shown` no difference is computed, which is most of the work.
    """
    design, stops, size = campaign.design, campaign.stops, campaign.design.size
    usual = stops.forecast(costs.overhead_s)
    of = _measured(campaign, replace(usual, noise_sd=usual.noise_sd * (costs.noise or 1.0)), seen)
    low, high = costs.within
    few, many = stops.forecast(costs.overhead_s * low), stops.forecast(costs.overhead_s * high)
    shortest = replace(few, seconds=few.least_s or few.seconds)
    longest = replace(many, seconds=many.most_s or many.seconds)
    detectable = needed = None
    if size is None:
        ends = _without_size(design, shortest, of, longest)
        blocks, trials = design.blocks, design.total
    else:
        full, ends = _of_blocks(size, design, shortest, of, longest)
        blocks, trials = full.blocks, full.trials
        if shown:
            detectable, needed = _shown(campaign, size, full.blocks, of.noise_sd)
    besides_s = campaign.soak.seconds if campaign.soak else 0.0
    prepare_s = (costs.prepare_s * low, costs.prepare_s, costs.prepare_s * high)
    early_s, usual_s, late_s = (
        None if end_s is None else end_s + made_s + besides_s
        for end_s, made_s in zip(ends, prepare_s, strict=True)
    )
    return Schedule(
        trials, blocks, early_s, usual_s, late_s, detectable, needed, of.noise_sd, of.seconds,
        size.spare if size else 0,
    )  # fmt: skip


Ends = tuple[float | None, float | None, float | None]
"""The machine time of all trials, in seconds: the least, the expected, the most."""


def _without_size(
    design: Design, shortest: TrialForecast, of: TrialForecast, longest: TrialForecast
) -> Ends:
    """Return the ends of a design that declares no blocks: by its budget or its trials."""
    if design.budget_s is not None:
        return shortest.seconds, design.budget_s, design.budget_s + longest.seconds
    if design.total is None:
        return None, None, None
    least_s, usual_s, most_s = (design.total * one.seconds for one in (shortest, of, longest))
    return least_s, usual_s, most_s


def _of_blocks(
    size: Size, design: Design, shortest: TrialForecast, of: TrialForecast, longest: TrialForecast
) -> tuple["Played", Ends]:
    """Return how far blocks come as expected, and the ends.

    The earliest end is that after the first decision, the latest that of the longest trials, with
    all that may repeat disturbed ones.
    """
    budget_s = design.budget_s
    after = size.after if budget_s is None else 0  # a budget is for all trials
    usual = played(size, size.blocks, budget_s, of)
    usual = replace(usual, trials=usual.trials + after, seconds=usual.seconds + after * of.seconds)
    first = min(_FEWEST, usual.blocks) if size.early else usual.blocks
    early_s = played(size, first, budget_s, shortest).seconds
    late_s = played(size, size.blocks, budget_s, longest).seconds
    late_s += (after + size.spare) * longest.seconds
    if budget_s is not None:
        late_s = budget_s + longest.seconds
    return usual, (early_s, usual.seconds, late_s)


def _shown(
    campaign: Campaign, size: Size, blocks: int, noise_sd: float
) -> tuple[float | None, int | None]:
    """Return the ratio that so many blocks show, and how many blocks show the margin."""
    method = campaign.rule.method
    if method.goal is Goal.FACTORS:
        return None, None
    looking = method.estimator is not Estimator.BLOCKS
    reached = reach(size, blocks, noise_sd, looking=looking)
    margin_log = log1p(campaign.spec.decide.margin)
    detectable = inf if reached == inf else ratio(reached)
    return detectable, needed_blocks(size, margin_log, noise_sd, looking=looking)


@dataclass(frozen=True, slots=True)
class Played:
    """How far a campaign comes: `blocks` begun, `trials` done, in `seconds` of machine time."""

    blocks: int
    trials: int
    seconds: float


def played(size: Size, blocks: int | None, budget_s: float | None, of: TrialForecast) -> Played:
    """Return how far a campaign comes whose trials take as long as forecast, all of them open.

    This follows the designs: no trial begins once the budget is used up, and no block that would
    exceed it.
    """
    firsts = size.workloads if of.first_s is not None else 0
    begun = trials = 0
    seconds = 0.0
    while blocks is None or begun < blocks:
        if begun and budget_s is not None and seconds + size.block * of.seconds > budget_s:
            break
        count = size.block + (0 if begun else size.checks * size.workloads)
        for _ in range(count):
            if budget_s is not None and seconds >= budget_s:
                return Played(begun + 1, trials, seconds)
            seconds += (of.first_s or 0.0) if trials < firsts else of.seconds
            trials += 1
        begun += 1
    return Played(begun, trials, seconds)


def _measured(campaign: Campaign, of: TrialForecast, seen: Sequence[Outcome]) -> TrialForecast:
    """Return the forecast of a trial, by the good check trials of the first workload if any."""
    size = campaign.design.size
    count = size.checks * size.workloads if size and of.checked else 0
    name, load = next(iter(campaign.workloads.items()))
    checks = [o for o in seen[:count] if o.trial.workload == name and o.status is TrialStatus.OK]
    if not checks:
        return of
    values = (m.value for o in checks for m in o.metrics if m.name == load.info.response)
    logs = [log(v) for v in values if v > 0]
    trial_s = sum(o.machine_time_s for o in checks) / len(checks)
    return replace(of, seconds=trial_s, noise_sd=expected_sd(logs, of.noise_sd))


def relative_noise(campaign: Campaign, outcomes: Sequence[Outcome]) -> float | None:
    """Return how noisy the trials of one treatment were, over what was forecast.

    None where too few trials show it.
    """
    logs: dict[tuple[str, str], list[float]] = {}
    for outcome in outcomes:
        trial = outcome.trial
        level = log_of(outcome, campaign.rule.responses[trial.workload])
        if level is not None and not trial.soak:
            logs.setdefault((trial.workload, trial.treatment), []).append(level)
    df = sum(len(some) - 1 for some in logs.values())
    if df < _FEWEST_DF:
        return None
    squares = sum((level - fmean(some)) ** 2 for some in logs.values() for level in some)
    relative = sqrt(squares / df) / campaign.stops.forecast().noise_sd
    return min(max(relative, _NOISES[0]), _NOISES[1])


Replan = Callable[[Mapping[str, str]], Campaign]
"""Plans a spec again with overrides, as ``--set`` takes them."""
_STEP = 2.0 ** (1 / 4)  # from one budget that is tried to the next
_FIRST_S = 60.0
_LONGEST_S = 30 * 24 * 3600.0
_HOUR_S = 3600.0


def smallest_budget(campaign: Campaign, costs: Costs, replan: Replan) -> float | None:
    """Return the smallest budget that shows the margin, in seconds rounded up; None for a month."""
    tried_s, budget_s = _FIRST_S, campaign.design.budget_s or 0.0
    while (tried_s := tried_s * _STEP) < _LONGEST_S:
        unit_s = 60.0 if tried_s < _HOUR_S else 600.0
        rounded_s = -(-tried_s // unit_s) * unit_s
        if rounded_s <= budget_s:
            continue
        other = replan({"design.budget": f'"{rounded_s:.0f}s"'})
        if schedule(other, costs).shows(campaign.spec.decide.margin):
            return rounded_s
    return None


def fewer_treatments(campaign: Campaign, costs: Costs, replan: Replan) -> Sequence[str]:
    """Return the most treatments, in the order of the spec, on which the budget can decide.

    None where even one is too many, or where the treatments are cells of a grid.
    """
    names = [name for name in campaign.treatments if name != campaign.rule.baseline]
    for count in range(len(names) - 1, 0, -1):
        less = _without(campaign, names[count:])
        if less and schedule(replan(less), costs).shows(campaign.spec.decide.margin):
            return names[:count]
    return ()


def _without(campaign: Campaign, names: Sequence[str]) -> dict[str, str]:
    """Return the overrides that remove treatments from a spec, none where that is not possible."""
    spec = campaign.spec
    if spec.treatments:
        return {f"treatments.{name}": "false" for name in names}
    if spec.design.rungs and set(names) <= set(spec.design.rungs):
        rungs = [rung for rung in spec.design.rungs if rung not in names]
        return {"design.rungs": toml(rungs)}
    return {}
