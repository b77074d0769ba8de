"""Cost and detectable difference of a campaign: estimated at first, measured after the checks."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isinf, log, log1p

from mydyno.analyse.forecast import (
    DEFAULT_TRIAL_SD,
    TRIAL_S,
    Forecast,
    Size,
    expected_sd,
    forecast,
    often,
)
from mydyno.campaign.adaptive import Adaptive
from mydyno.campaign.ladder import Ladder
from mydyno.campaign.plan import Campaign
from mydyno.campaign.race import Race
from mydyno.campaign.stops import Fixed
from mydyno.campaign.switchback import SEGMENT_S, Segments
from mydyno.cli.terminal import duration
from mydyno.model import Outcome, Status

_MOST_BLOCKS = 1_000  # only without blocks and budget, which a plan does not allow
_RESTART_S = 20.0
_SEGMENTS_SD = 0.05  # standard deviation of segments (logs)


def price(campaign: Campaign, seen: Sequence[Outcome] = ()) -> Forecast | None:
    """Return the forecast of a race, from the checks in `seen`; None for another design."""
    checks = _checks(campaign, seen)
    trial_s = sum(o.machine_time_s for o in checks) / len(checks) if checks else _guess_s(campaign)
    size = _size(campaign, trial_s)
    if size is None:
        return None
    usual_sd = _SEGMENTS_SD if isinstance(campaign.stops, Segments) else DEFAULT_TRIAL_SD
    noise_sd = expected_sd(_levels(campaign, checks)) if checks else usual_sd
    return forecast(size, log1p(campaign.spec.decide.margin), noise_sd, trial_s)


def describe(found: Forecast, campaign: Campaign) -> str:
    """Return a forecast in a sentence or two."""
    margin = campaign.spec.decide.margin
    size = _size(campaign, found.trial_s)
    blocks = size.blocks if size else None
    within = f" in {blocks} block{'s' if blocks > 1 else ''}" if blocks else ""
    text = (
        f"trials repeat to {_percent(found.noise_sd)} and take {duration(found.trial_s)}; "
        f"{_shown(found)} can be shown{within}; "
        f"at most {found.trials} trials, {duration(found.seconds)} of machine time"
    )
    if blocks is None or found.needed <= blocks:
        return text
    return (
        f"{text}. Equivalence within {_percent(margin)} needs {found.needed} blocks; set "
        f"design.blocks = {found.needed}, or a wider decide.margin"
    )


def describe_guess(found: Forecast, campaign: Campaign) -> str:
    """Return the assumptions of a forecast, before anything was measured."""
    size = _size(campaign, found.trial_s)
    text = (
        f"assumed: trials repeat to {_percent(found.noise_sd)} and take {duration(found.trial_s)}"
    )
    checked = size and size.checks and not isinstance(campaign.stops, Segments)
    return f"{text}; the first {size.checks} trials measure this" if size and checked else text


@dataclass(slots=True)
class LabCheck:
    """Reports what can be detected on this host, after the check trials."""

    campaign: Campaign
    seen: list[Outcome] = field(default_factory=list)

    def after(self, outcome: Outcome) -> str:
        """Return the result of the checks after the last of them, else ``""``."""
        self.seen.append(outcome)
        size = _size(self.campaign, TRIAL_S)
        if isinstance(self.campaign.stops, Segments):
            return ""  # the settling trial is longer than the others and does not count
        if size is None or len(self.seen) != size.checks * size.workloads:
            return ""
        found = price(self.campaign, self.seen)
        return f"lab check: {describe(found, self.campaign)}" if found else ""


def _race(campaign: Campaign) -> Race | None:
    design = campaign.design.race if isinstance(campaign.design, Ladder) else campaign.design
    return design if isinstance(design, Race) else None


def _size(campaign: Campaign, trial_s: float) -> Size | None:
    """Return the size of a race whose trials take so long; its budget may end it before."""
    design = _race(campaign)
    if design is None:
        return None
    size = Size(len(design.treatments) - 1, len(design.workloads), 0, design.checks)
    blocks = design.blocks or _MOST_BLOCKS
    if design.budget_s is not None:
        trials = design.budget_s / trial_s / size.workloads - size.checks
        blocks = min(blocks, max(1, int(trials / (size.arms + often(size)))))
    return replace(size, blocks=blocks)


def _guess_s(campaign: Campaign) -> float:
    """Return the expected length of a trial in s, before it is measured."""
    stops = campaign.stops
    if isinstance(stops, Segments):
        return SEGMENT_S
    if isinstance(stops, Fixed):
        return stops.warmup_s + stops.window_s + _RESTART_S
    if not isinstance(stops, Adaptive):
        return TRIAL_S
    return min(max(TRIAL_S, _waited_s(stops)), stops.most_s or inf)


def _waited_s(stops: Adaptive) -> float:
    """Return the least length of a trial in s, if the spec sets a bias."""
    if stops.bias is None:
        return 0.0
    from mydyno.analyse.lengths import unlearned_s  # noqa: PLC0415 - numpy and scipy

    return unlearned_s(stops.bias) + _RESTART_S


def _checks(campaign: Campaign, seen: Sequence[Outcome]) -> list[Outcome]:
    """Return the good check trials of the first workload."""
    size = _size(campaign, TRIAL_S)
    count = size.checks * size.workloads if size else 0
    first = next(iter(campaign.workloads))
    mine = [o for o in seen[:count] if o.trial.workload == first]
    return [o for o in mine if o.status is Status.OK]


def _levels(campaign: Campaign, checks: Sequence[Outcome]) -> list[float]:
    """Return the logs of the response in the measured windows."""
    response = next(iter(campaign.workloads.values())).response
    return [log(m.value) for o in checks for m in o.metrics if m.name == response and m.value > 0]


def _shown(found: Forecast) -> str:
    return "nothing" if isinf(found.detectable) else f"{_percent(found.detectable - 1)} or more"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
