"""Campaigns planned from a spec as a user writes it: small ones, and what plans foretell."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

from decisions_ours import BASE, Figures, population, scored
from mydyno.campaign.plan import Campaign, plan
from mydyno.campaign.spec import decode
from mydyno.campaign.timing import Costs, relative_noise, schedule
from mydyno.campaign.treatments import Environment
from mydyno.stats import compare, sequential
from mydyno.stats.effects import shown_by
from mydyno_simulate import WORLDS, Arm, Machine, Warmup
from mydyno_simulate.play import play

RESTART_S = 6.0  # a server with a small data set
EFFECTS = (0, 5, 10, 20, 35)  # %
MINUTES = {"race": (3, 5, 10), "switchback": (3, 5)}
_TAU_S = 4.0  # a warm-up that is over after 15 s
_SPEC = """
[treatments.base]
{treatments}
[workloads.w]
tool = "command"
argv = ["x"]
[stack]
server = "none"
[decide]
guards = {{}}
baseline = "base"
[design]
kind = "{kind}"
budget = "{minutes}m"
seed = {seed}
"""
_HOST = Environment(8 * 2**30, 4, "mysql", (8, 0, 33))


_TREATMENT = '[treatments.{0}]\n"load/env.X" = "{0}"'
SEVERAL = ("a", "b", "c", "d")
_HOURS = 2
_RIGHT = 0.20


def _campaign(kind: str, minutes: int, seed: int, names: Sequence[str] = ("a",)) -> Campaign:
    treatments = "\n".join(map(_TREATMENT.format, names))
    text = _SPEC.format(kind=kind, minutes=minutes, seed=seed, treatments=treatments)
    return plan(decode(text, "pair.toml"), text, "pair.toml", _HOST)


def pair(kind: str, minutes: int, percent: int) -> Callable[[str, int], Figures]:
    """Return a campaign of a treatment that is better by so much, within so many minutes."""

    def run(world: str, seed: int) -> Figures:
        effect = math.log1p(percent / 100)
        arms = {BASE: Arm(warmup=Warmup(tau_s=_TAU_S)), "a": Arm(effect, Warmup(tau_s=_TAU_S))}
        campaign = _campaign(kind, minutes, seed)
        host = replace(WORLDS[world], restart_s=RESTART_S)
        outcomes = play(campaign.design, campaign.stops, Machine(host, arms, seed))
        compared = compare(outcomes, campaign.rule, list(arms))
        spent_s = sum(o.machine_time_s for o in outcomes)
        found = schedule(campaign, Costs(RESTART_S, 0.0, measured=True))
        within = (found.earliest_s or 0.0) <= spent_s <= (found.latest_s or math.inf)
        return {**scored(arms, compared.treatments), "spent_s": spent_s, "within": within}

    return run


def foretold(world: str, seed: int) -> Figures:
    """Return how far a plan is from what comes, where no treatment leaves early.

    The plan of two hours of four treatments, before its first trial, by what is assumed (`new`),
    by what an earlier campaign has shown (`again`), and after its check trials (`checked`).
    """
    host = replace(WORLDS[world], restart_s=RESTART_S)
    arms = population(world).arms(seed, len(SEVERAL), null=True)
    arms = dict(zip((BASE, *SEVERAL), arms.values(), strict=True))
    campaigns = [_staying(_campaign("race", 60 * _HOURS, s, SEVERAL)) for s in (seed, seed + 10**6)]
    now, before = (
        play(c.design, c.stops, Machine(host, arms, s))
        for c, s in zip(campaigns, (seed, seed + 10**6), strict=True)
    )
    campaign = campaigns[0]
    measured = sequential.measure(now, campaign.rule, "w").effects
    reached = median(
        shown_by(max(e.critical, e.simultaneous), e.pairs, e.se) for e in measured.values()
    )
    spent_s = sum(o.machine_time_s for o in now)
    new = Costs(RESTART_S, 0.0, measured=True)
    again = replace(new, noise=relative_noise(campaigns[1], before))
    plans = {
        "new": schedule(campaign, new),
        "again": schedule(campaign, again),
        "checked": schedule(campaign, again, now),
    }
    figures = {"foretold": 1.0}
    for name, found in plans.items():
        figures[f"{name}_price"] = abs((found.expected_s or 0.0) / spent_s - 1) <= _RIGHT
        shown = math.log(found.detectable or math.inf) / reached
        figures[f"{name}_log"] = math.log(shown)
        figures[f"{name}_shown"] = abs(shown - 1) <= _RIGHT
    return figures


def _staying(campaign: Campaign) -> Campaign:
    """Return the campaign with a race that nobody leaves."""
    cells = {("w", name) for name in campaign.treatments}
    return replace(campaign, design=replace(campaign.design, undecided=lambda _: cells))
