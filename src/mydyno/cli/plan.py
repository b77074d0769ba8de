"""`mydyno plan`: what `mydyno run` would do; nothing is changed."""

import sys
import textwrap
from math import isfinite
from pathlib import Path

import msgspec

from mydyno.apply import REFORMAT
from mydyno.campaign.designs import Blocks
from mydyno.campaign.notice import open_campaigns
from mydyno.campaign.plan import Campaign
from mydyno.campaign.spec import DeviceTable
from mydyno.campaign.stops import Fixed
from mydyno.campaign.stores import key_of
from mydyno.cli import options
from mydyno.cli.benches import build
from mydyno.cli.price import describe_guess, price
from mydyno.cli.privatebench import lab_spec
from mydyno.cli.specs import find
from mydyno.cli.terminal import duration, print_message
from mydyno.stack.kernel import RELEASE

_WIDTH = 96
_TOO_SHORT = "nothing: the budget is too small for two blocks"


class Plan(msgspec.Struct, frozen=True):
    """What a campaign would do; `load_s` is the time under load, without restores and restarts.

    `costs` is what a change of each setting interrupts; `devices` the device and filesystem of each
    treatment's data in a lab.  For a race, `trials` and `machine_time_s` are upper limits and
    `detectable` is the smallest ratio above 1 that it can show: estimates until the first trials
    are measured.  `data` is the existing data directory that is copied, if any.
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
    machine_time_s: float | None
    detectable: float | None
    why: str
    costs: dict[str, str]
    devices: dict[str, str]
    data: str = ""
    guess: str = ""
    soak_s: float | None = None


def plan(
    spec: options.Spec,
    *,
    settings: options.Set = None,
    budget: options.Budget = None,
    scale: options.Scale = None,
    json: options.Json = False,
) -> None:
    """Show the trials, the settings and the time a campaign would take."""
    source = find(spec, options.overrides(settings, budget), scale)
    allowed = ["host", f"{REFORMAT}{source.decode().stack.device}"]
    built = build(source, allowed, Path())
    for line in open_campaigns(built.db, built.campaign.spec.stack.host):
        print_message(f"warning: {line}")
    found = of(built.campaign, built.name)
    if json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    sys.stdout.write(_text(found))


def of(campaign: Campaign, server: str) -> Plan:
    """Return what a campaign would do."""
    design, stop = campaign.design, campaign.stops
    guess = price(campaign)
    trials = guess.trials if guess else None
    if isinstance(design, Blocks) and design.blocks:
        trials = design.blocks * design.size
    length_s = stop.warmup_s + stop.window_s if isinstance(stop, Fixed) else None
    return Plan(
        campaign=campaign.name,
        question=campaign.spec.campaign.question,
        server=server,
        baseline=campaign.baseline,
        treatments={name: dict(s) for name, s in campaign.treatments.items()},
        workloads=[*campaign.workloads],
        blocks=design.blocks,
        trials=trials,
        load_s=trials * length_s if trials and length_s else None,
        budget_s=design.budget_s,
        machine_time_s=guess.seconds if guess else None,
        detectable=guess.detectable if guess else None,
        why=campaign.why,
        guess=describe_guess(guess, campaign) if guess else "",
        costs={key: _cost(key) for s in campaign.treatments.values() for key in s},
        devices=_devices(campaign),
        data=campaign.spec.stack.data,
        soak_s=campaign.soak.seconds if campaign.soak else None,
    )


def _devices(campaign: Campaign) -> dict[str, str]:
    """Return the lab and the filesystem under each treatment's data, by treatment."""
    device = campaign.spec.stack.device
    if not isinstance(device, DeviceTable):
        return {}
    workload = next(iter(campaign.workloads.values()))
    keys = {n: key_of(s, workload, campaign.spec.stack) for n, s in campaign.treatments.items()}
    if device.machine:
        disks = f"{device.disks} disks of {device.size} {device.disk_class}".rstrip()
        return {name: f"virtual machine, {disks}: {key.description}" for name, key in keys.items()}
    return {
        name: f"{lab_spec(device, name, key.stripe).description}: {key.description}"
        for name, key in keys.items()
    }


def _cost(key: str) -> str:
    """Return what changing a setting interrupts, by its layer, without asking a server.

    A private server is restarted for each trial, so its dynamic variables cost a restart too,
    unless the protocol says ``reset = "none"``.
    """
    layer, _, name = key.rpartition("/")[2].partition(".")
    if key.startswith("load/"):
        return "none"
    if (layer, name) == ("kernel", RELEASE):
        return "reboot"
    if layer == "server":
        return "another data set"
    if layer in {"fs", "raid"}:
        return "remount" if name == "mount" else "reformat of the lab disk"
    return "online" if layer in {"block", "kernel", "link"} else "restart"


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
    lines += [f"device      {device}" for device in dict.fromkeys(found.devices.values())]
    if found.data:
        lines.append(f"data        a copy of {found.data}, which is only read")
    lines.append(textwrap.fill(f"design      {found.why}", _WIDTH, subsequent_indent=" " * 12))
    lines += _price(found)
    return "\n".join(lines) + "\n"


def _price(found: Plan) -> list[str]:
    """Return the lines on trials, time and detectable difference."""
    lines: list[str] = []
    if found.soak_s:
        lines.append(f"soak        the winner for {duration(found.soak_s)} more, after all trials")
    if found.trials:
        most = "at most " if found.detectable else ""
        blocks = f" in {found.blocks} blocks" if found.blocks else ""
        lines.append(f"trials      {most}{found.trials}{blocks}, order drawn at random")
    if found.load_s:
        lines.append(
            f"time        {duration(found.load_s)} under load, restarts and restores extra"
        )
    if found.machine_time_s and found.detectable:
        shown = (found.detectable - 1) * 100
        lines.append(f"price       at most {duration(found.machine_time_s)} of machine time")
        differences = f"differences of {shown:.1f} % or more" if isfinite(shown) else _TOO_SHORT
        lines.append(f"shows       {differences}")
        lines.append(f"            ({found.guess})")
    if found.budget_s:
        lines.append(f"budget      {duration(found.budget_s)} of machine time")
    return lines
