"""`mydyno plan`: what `mydyno run` would do; nothing is changed."""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import isfinite, isinf, log, log1p
from pathlib import Path

import msgspec

from mydyno.campaign.plan import Campaign
from mydyno.campaign.spec import DeviceTable
from mydyno.cli.benches import Built, build
from mydyno.cli.privatebench import lab_spec
from mydyno.cli.recipes import find, overrides
from mydyno.cli.terminal import (
    Budget,
    Json,
    Scale,
    Set,
    SpecName,
    duration,
    print_json,
    print_message,
)
from mydyno.host import Remote, ask
from mydyno.model import Action, Cost, Outcome, Reset, TrialStatus
from mydyno.report.units import counted, quantity, setting
from mydyno.snapshot.store import free as free_bytes
from mydyno.stack.layers import Scope, cost_of, of_scope
from mydyno.stack.protocol import spec_key
from mydyno.stats.effects import (
    TRIAL_S,
    Forecast,
    expected_sd,
    forecast,
)
from mydyno.testbed.lock import open_campaigns
from mydyno.testbed.preflight import REFORMAT, existing_parent, refuse_occupied
from mydyno.testbed.stores import key_of, needed


def price(campaign: Campaign, seen: Sequence[Outcome] = ()) -> Forecast | None:
    """Return the forecast of a race, None for another design.

    It comes from the good check trials of the first workload in `seen`, or else is assumed.
    """
    checks_of = campaign.design.size(TRIAL_S)
    count = checks_of.checks * checks_of.workloads if checks_of else 0
    name, load = next(iter(campaign.workloads.items()))
    checks = [o for o in seen[:count] if o.trial.workload == name and o.status is TrialStatus.OK]
    assumed = campaign.stops.forecast()
    trial_s = sum(o.machine_time_s for o in checks) / len(checks) if checks else assumed.seconds
    size = campaign.design.size(trial_s)
    if size is None:
        return None
    values = (m.value for o in checks for m in o.metrics if m.name == load.info.response)
    noise_sd = expected_sd([log(v) for v in values if v > 0]) if checks else assumed.noise_sd
    return forecast(size, log1p(campaign.spec.decide.margin), noise_sd, trial_s)


def describe(found: Forecast, campaign: Campaign) -> str:
    """Return a forecast in a sentence or two."""
    margin = campaign.spec.decide.margin
    size = campaign.design.size(found.trial_s)
    blocks = size.blocks if size else None
    within = f" in {counted(blocks, 'block')}" if blocks else ""
    shown = "nothing" if isinf(found.detectable) else f"{_percent(found.detectable - 1)} or more"
    text = (
        f"trials repeat to {_percent(found.noise_sd)} and take {duration(found.trial_s)}; "
        f"{shown} can be shown{within}; "
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
    size = campaign.design.size(found.trial_s)
    text = (
        f"assumed: trials repeat to {_percent(found.noise_sd)} and take {duration(found.trial_s)}"
    )
    if size and size.checks and campaign.stops.forecast().checked:
        text += f"; the first {size.checks} trials measure this"
    return text


@dataclass(slots=True)
class LabCheck:
    """Reports what can be detected on this host, after the check trials."""

    campaign: Campaign
    seen: list[Outcome] = field(default_factory=list)

    def after(self, outcome: Outcome) -> str:
        """Return the result of the checks after the last of them, else ``""``."""
        self.seen.append(outcome)
        size = self.campaign.design.size(TRIAL_S)
        if not self.campaign.stops.forecast().checked:
            return ""  # the settling trial is longer than the others and does not count
        if size is None or len(self.seen) != size.checks * size.workloads:
            return ""
        found = price(self.campaign, self.seen)
        return f"lab check: {describe(found, self.campaign)}" if found else ""


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


_WIDTH = 96
_TOO_SHORT = "nothing: the budget is too small for two blocks"


class Plan(msgspec.Struct, frozen=True):
    """What a campaign would do; `load_s` is the time under load, without restores and restarts.

    `costs` is what a change of each setting interrupts; `devices` the device and filesystem of each
    treatment's data in a lab.  For a race, `trials` and `machine_time_s` are upper limits and
    `detectable` is the smallest ratio above 1 that it can show: estimates until the first trials
    are measured.  `data` is the existing data directory that is copied, if any.
    `place` is where the data would be, and what they would take.
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
    place: str = ""


def _place(built: Built) -> str:
    """Return where the data would be, on which filesystem, and what they would take of it."""
    campaign, host = built.campaign, built.db
    device = campaign.spec.stack.device
    if not any(w.info.needs_server or w.info.data_key for w in campaign.workloads.values()):
        return ""
    if isinstance(device, DeviceTable) and device.machine:
        return ""  # on the machine's own disks, which are listed
    sets = len(needed(campaign))
    if isinstance(device, str) and device != "here":
        return f"{device}, formatted for this campaign; {counted(sets, 'data set')}"
    folder = Path("runs") / campaign.name / "work"
    there = existing_parent(host, folder)
    columns = ("--noheadings", "--output", "FSTYPE,SOURCE", "--target", str(there))
    found = host.run(Action(("findmnt", *columns))).stdout.decode(errors="replace").split()
    free = quantity(ask(host, free_bytes(there)), "B")
    use = f"{counted(sets, 'data set')}, each of them twice"
    if isinstance(device, DeviceTable):
        use = f"{counted(sets, 'lab disk')}, each of at most {device.size}"
    name = there if isinstance(host, Remote) else folder
    return f"{name} ({' on '.join(found[:2]) or 'unknown filesystem'}, {free} free): {use}"


def plan(
    spec: SpecName,
    *,
    settings: Set = None,
    budget: Budget = None,
    scale: Scale = None,
    json: Json = False,
) -> None:
    """Show the trials, the settings and the time a campaign would take."""
    source = find(spec, overrides(settings, budget), scale)
    allowed = ["host", f"{REFORMAT}{source.decode().stack.device}"]
    built = build(source, allowed, Path())
    refuse_occupied(built.db, built.campaign.spec.stack, Path())
    for line in open_campaigns(built.db, built.campaign.spec.stack.host):
        print_message(f"warning: {line}")
    found = msgspec.structs.replace(of(built.campaign, built.name), place=_place(built))
    if json:
        print_json(found)
    else:
        sys.stdout.write(_text(found))


def of(campaign: Campaign, server: str) -> Plan:
    """Return what a campaign would do."""
    design, guess = campaign.design, price(campaign)
    trials = guess.trials if guess else design.total
    length_s = campaign.stops.forecast().load_s
    hot = getattr(design, "reset", None) is Reset.NONE
    return Plan(
        campaign=campaign.name,
        question=campaign.spec.campaign.question,
        server=server,
        baseline=campaign.rule.baseline,
        treatments={name: dict(s) for name, s in campaign.treatments.items()},
        workloads=[*campaign.workloads],
        blocks=design.blocks,
        trials=trials,
        load_s=trials * length_s if trials and length_s else None,
        budget_s=design.budget_s,
        machine_time_s=guess.seconds if guess else None,
        detectable=guess.detectable if guess else None,
        why=campaign.kind.label,
        guess=describe_guess(guess, campaign) if guess else "",
        costs={key: _cost(key, hot=hot) for s in campaign.treatments.values() for key in s},
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


def _cost(key: str, *, hot: bool = False) -> str:
    """Return what changing a setting interrupts, by its layer, without asking a server.

    A private server is restarted for each trial, so its dynamic variables cost a restart too,
    unless it is `hot`: kept running from trial to trial.
    """
    if hot and key.startswith("db/mysqld."):
        return "online"
    if key.startswith("load/"):
        return "none"
    cost = cost_of(key)
    if cost is Cost.REFORMAT:
        return "reformat of the lab disk" if of_scope(key, Scope.DISK) else "another data set"
    return cost.name.lower()


def _text(found: Plan) -> str:
    lines = [f"{found.campaign}: {found.question}".rstrip(": ")]
    if found.server:
        lines.append(f"server      {found.server}")
    lines.append(f"workloads   {', '.join(found.workloads)}")
    for name, settings in found.treatments.items():
        mark = " (baseline)" if name == found.baseline else ""
        lines.append(f"treatment   {name}{mark}" + ("" if settings else ": as found"))
        lines += [
            f"              {spec_key(k)} = {setting(k, v) or v}   ({found.costs[k]})"
            for k, v in settings.items()
        ]
    lines += [f"device      {device}" for device in dict.fromkeys(found.devices.values())]
    if found.place:
        lines.append(
            textwrap.fill(f"files       {found.place}", _WIDTH, subsequent_indent=" " * 12)
        )
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
