"""`mydyno plan`: what `run` would do, and nothing done."""

import sys
from pathlib import Path

import msgspec

from mydyno.campaign.designs import Blocks
from mydyno.campaign.plan import Campaign
from mydyno.campaign.stops import Fixed
from mydyno.cli import options
from mydyno.cli.benches import build
from mydyno.cli.specs import find
from mydyno.cli.terminal import duration


class Plan(msgspec.Struct, frozen=True):
    """What a campaign would do; `load_s` is the time under load, without restores and restarts.

    `costs` says what each setting interrupts when it is moved.
    """

    campaign: str
    question: str
    server: str
    baseline: str
    treatments: dict[str, dict[str, str]]
    workloads: list[str]
    blocks: int | None
    trials: int | None
    load_s: float | None
    budget_s: float | None
    costs: dict[str, str]


def plan(
    spec: options.Spec,
    *,
    settings: options.Set = None,
    budget: options.Budget = None,
    json: options.Json = False,
) -> None:
    """Show the trials, the settings and the time a campaign would take."""
    built = build(find(spec, options.overrides(settings, budget)), ["host"], Path())
    found = of(built.campaign, built.name)
    if json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    sys.stdout.write(_text(found))


def of(campaign: Campaign, server: str) -> Plan:
    """Return what a campaign would do."""
    design, stop = campaign.design, campaign.stop
    blocks = design.blocks if isinstance(design, Blocks) else None
    trials = blocks * len(campaign.treatments) * len(campaign.workloads) if blocks else None
    length_s = stop.warmup_s + stop.window_s if isinstance(stop, Fixed) else None
    return Plan(
        campaign=campaign.name,
        question=campaign.spec.campaign.question,
        server=server,
        baseline=campaign.baseline,
        treatments={name: dict(s) for name, s in campaign.treatments.items()},
        workloads=[*campaign.workloads],
        blocks=blocks,
        trials=trials,
        load_s=trials * length_s if trials and length_s else None,
        budget_s=design.budget_s if isinstance(design, Blocks) else None,
        costs={key: _cost(key) for s in campaign.treatments.values() for key in s},
    )


def _cost(key: str) -> str:
    """Return what moving a setting interrupts, as far as its layer tells without a server.

    A private server is started anew for each trial, so its dynamic variables cost a restart too,
    unless the protocol says ``reset = "none"``.
    """
    layer, _, name = key.rpartition("/")[2].partition(".")
    if key.startswith("load/"):
        return "none"
    if layer == "fs":
        return "remount" if name == "mount" else "reformat of the lab disk"
    return "online" if layer in {"block", "kernel"} else "restart"


def _text(found: Plan) -> str:
    lines = [f"{found.campaign}: {found.question}".rstrip(": ")]
    if found.server:
        lines.append(f"server      {found.server}")
    lines.append(f"workloads   {', '.join(found.workloads)}")
    for name, settings in found.treatments.items():
        mark = " (baseline)" if name == found.baseline else ""
        lines.append(f"treatment   {name}{mark}" + ("" if settings else ": as found"))
        lines += [
            f"              {k.removeprefix('db/')} = {v}   ({found.costs[k]})"
            for k, v in settings.items()
        ]
    if found.trials:
        lines.append(f"trials      {found.trials} in {found.blocks} blocks, order drawn at random")
    if found.load_s:
        lines.append(
            f"time        {duration(found.load_s)} under load, restarts and restores extra"
        )
    if found.budget_s:
        lines.append(f"budget      {duration(found.budget_s)} of machine time")
    return "\n".join(lines) + "\n"
