"""Small campaigns: one treatment and the baseline, planned from a spec as a user writes it."""

import math
from collections.abc import Callable
from dataclasses import replace

from decisions_ours import BASE, Figures, scored
from mydyno.campaign.plan import Campaign, plan
from mydyno.campaign.spec import decode
from mydyno.campaign.timing import Costs, schedule
from mydyno.campaign.treatments import Environment
from mydyno.stats import compare
from mydyno_simulate import WORLDS, Arm, Machine, Warmup
from mydyno_simulate.play import play

RESTART_S = 6.0  # a server with a small data set
EFFECTS = (0, 5, 10, 20, 35)  # %
MINUTES = {"race": (3, 5, 10), "switchback": (3, 5)}
_TAU_S = 4.0  # a warm-up that is over after 15 s
_SPEC = """
[treatments.base]
[treatments.a]
"load/env.X" = "1"
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


def _campaign(kind: str, minutes: int, seed: int) -> Campaign:
    text = _SPEC.format(kind=kind, minutes=minutes, seed=seed)
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
