"""What a campaign can show and what it costs: guessed before its first trials, measured after."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import log, log1p

from mydyno.analyse.forecast import STARTS_SD, TRIAL_S, Forecast, Size, expected_sd, forecast
from mydyno.campaign.ladder import Ladder
from mydyno.campaign.plan import Campaign
from mydyno.campaign.race import Race
from mydyno.cli.terminal import duration
from mydyno.model import Outcome, Status


def price(campaign: Campaign, seen: Sequence[Outcome] = ()) -> Forecast | None:
    """Return what a race can do, by the checks that were `seen`; None for another design."""
    size = _size(campaign)
    if size is None:
        return None
    checks = _checks(campaign, seen)
    margin = log1p(campaign.spec.decide.margin)
    if not checks:
        return forecast(size, margin)
    trial_s = sum(o.machine_time_s for o in checks) / len(checks)
    return forecast(size, margin, expected_sd(_levels(campaign, checks)), trial_s)


def said(found: Forecast, campaign: Campaign) -> str:
    """Return a forecast in a sentence or two."""
    margin = campaign.spec.decide.margin
    blocks = campaign.design.blocks
    told = (
        f"trials repeat to {_percent(found.noise_sd)} and take {duration(found.trial_s)}; "
        f"{_percent(found.detectable - 1)} or more can be shown"
        f"{f' in {blocks} blocks' if blocks else ''}; "
        f"at most {found.trials} trials, {duration(found.seconds)} of machine time"
    )
    if blocks is None or found.needed <= blocks:
        return told
    return (
        f"{told}. That nothing differs by {_percent(margin)} would take {found.needed} blocks: set "
        f"design.blocks = {found.needed}, or a wider decide.margin"
    )


def guessed() -> str:
    """Return what a forecast rests on before anything was measured."""
    return (
        f"guessed from trials that repeat to {_percent(STARTS_SD)} and take {duration(TRIAL_S)}; "
        "the first trials are of the baseline alone and tell"
    )


@dataclass(slots=True)
class LabCheck:
    """Says what can be seen on this host once the trials that come first have told."""

    campaign: Campaign
    seen: list[Outcome] = field(default_factory=list)

    def after(self, outcome: Outcome) -> str:
        """Return what the checks have shown, once: after the last of them."""
        self.seen.append(outcome)
        size = _size(self.campaign)
        if size is None or len(self.seen) != size.checks * size.workloads:
            return ""
        found = price(self.campaign, self.seen)
        return f"lab check: {said(found, self.campaign)}" if found else ""


def _race(campaign: Campaign) -> Race | None:
    design = campaign.design.race if isinstance(campaign.design, Ladder) else campaign.design
    return design if isinstance(design, Race) else None


def _size(campaign: Campaign) -> Size | None:
    design = _race(campaign)
    if design is None:
        return None
    blocks = design.blocks or 1_000
    return Size(len(design.treatments) - 1, len(design.workloads), blocks, design.checks)


def _checks(campaign: Campaign, seen: Sequence[Outcome]) -> list[Outcome]:
    """Return the trials that came first, of the first workload, as far as they went well."""
    size = _size(campaign)
    count = size.checks * size.workloads if size else 0
    first = next(iter(campaign.workloads))
    mine = [o for o in seen[:count] if o.trial.workload == first]
    return [o for o in mine if o.status is Status.OK]


def _levels(campaign: Campaign, checks: Sequence[Outcome]) -> list[float]:
    """Return the logs of the response in the measured windows."""
    response = next(iter(campaign.workloads.values())).response
    return [log(m.value) for o in checks for m in o.metrics if m.name == response and m.value > 0]


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
