"""`mydyno plan`: what `mydyno run` would do; nothing is changed."""

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from math import isfinite, isinf
from pathlib import Path

import msgspec

from mydyno.campaign.plan import Campaign
from mydyno.campaign.race import phase
from mydyno.campaign.spec import EXISTING, DeviceTable
from mydyno.campaign.timing import (
    Costs,
    Schedule,
    fewer_treatments,
    schedule,
    smallest_budget,
)
from mydyno.cli.benches import Built, build
from mydyno.cli.narrow import TriedWith, Try, tried
from mydyno.cli.recipes import SpecSource, find, overrides
from mydyno.cli.run_directory import RUNS
from mydyno.cli.terminal import (
    Budget,
    Json,
    Scale,
    Set,
    SpecName,
    print_message,
    print_result,
)
from mydyno.host import Remote, ask
from mydyno.journal.register import remembered
from mydyno.model import Action, Cost, Outcome, Reset
from mydyno.model.text import size_bytes
from mydyno.report.units import counted, duration, quantity, setting
from mydyno.server.existing import DATABASE
from mydyno.snapshot.store import free as free_bytes
from mydyno.stack.layers import Scope, cost_of, of_scope
from mydyno.stack.protocol import spec_key
from mydyno.testbed.assemble import lab_spec
from mydyno.testbed.existing_bench import CONSENT
from mydyno.testbed.lock import open_campaigns
from mydyno.testbed.preflight import REFORMAT, existing_parent, refuse_occupied
from mydyno.testbed.stores import key_of, needed


def costs_of(built: Built) -> Costs:
    """Return what the last campaign of such servers and data cost on this machine, or a guess."""
    found = remembered(cost_key(built))
    if found is None:
        return Costs()
    return Costs(found.overhead_s, found.prepare_s, measured=True, noise=found.noise)


def cost_key(built: Built) -> str:
    """Return what the costs of a campaign depend on, in words."""
    spec = built.campaign.spec
    data = sorted({repr(w) for w in built.campaign.workloads.values()})
    return f"{built.db.name} | {built.name} | {spec.stack.device} | {spec.protocol} | {data}"


def describe(found: Schedule, campaign: Campaign) -> str:
    """Return what check trials show, in a sentence or two."""
    margin, blocks = campaign.spec.decide.margin, found.blocks
    within = f" in {counted(blocks, 'block')}" if blocks else ""
    text = (
        f"trials repeat to {_percent(found.noise_sd)} and take {duration(found.trial_s)}; "
        f"{_detectable(found.detectable)} can be shown{within}; at most {found.trials} trials"
    )
    if blocks is None or found.needed is None or found.needed <= blocks:
        return text
    return (
        f"{text}. Differences of {_percent(margin)} need {found.needed} blocks; set "
        f"design.blocks = {found.needed}, or a larger design.budget, or a wider decide.margin"
    )


def _detectable(ratio: float | None) -> str:
    """Return what differences a detectable ratio shows; a large one is no help in per cent."""
    if ratio is None or isinf(ratio):
        return "nothing"
    if ratio > 10:  # noqa: PLR2004 - tenfold
        return "no difference below tenfold"
    return f"differences of {_percent(ratio - 1)} or more"


@dataclass(slots=True)
class Remarks:
    """What is worth a line between trials.

    After the check trials what can be detected on this host, later what the next trials are for.
    """

    campaign: Campaign
    costs: Costs
    seen: list[Outcome] = field(default_factory=list)

    def after(self, outcome: Outcome) -> str:
        """Return the remark after a trial, in most cases ``""``."""
        if outcome.trial.soak:
            return ""
        design, size = self.campaign.design, self.campaign.design.size
        before = phase(design, self.seen)
        self.seen.append(outcome)
        now = phase(design, self.seen)
        if now != before and design.next(self.seen):
            return now
        if not self.campaign.stops.forecast().checked:
            return ""  # the settling trial is longer than the others and does not count
        if size is None or len(self.seen) != size.checks * size.workloads:
            return ""
        found = schedule(self.campaign, self.costs, self.seen)
        return f"check trials: {describe(found, self.campaign)}"


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"


_filled = partial(textwrap.fill, width=96, subsequent_indent=" " * 12)
_TOO_SHORT = "nothing: the budget is too small for two blocks"


class Plan(msgspec.Struct, frozen=True):
    """What a campaign would do; `load_s` is the time under load, without restores and restarts.

    `costs` is what a change of each setting interrupts; `devices` the device and filesystem of each
    treatment's data in a lab.  `trials` and `blocks` are those if no treatment leaves early; at
    most `spare` more repeat disturbed ones.  `detectable` is the ratio above 1 that four
    of five such campaigns show.  The campaign ends between `earliest_s` and `latest_s`, usually at
    `expected_s`, in seconds with `prepare_s` before the first trial: estimates, from earlier
    campaigns on this machine where `measured`.  `advice` is what a budget that cannot show the
    margin needs.  `data` is the existing data directory that is copied, if any, and with `replica`
    one follows the server.  `place` is where the data would be, and what they would take.
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
    earliest_s: float | None
    expected_s: float | None
    latest_s: float | None
    prepare_s: float
    measured: bool
    detectable: float | None
    why: str
    costs: dict[str, str]
    devices: dict[str, str]
    data: str = ""
    replica: bool = False
    guess: str = ""
    advice: str = ""
    soak_s: float | None = None
    place: str = ""
    spare: int = 0


def _place(built: Built) -> str:
    """Return where the data would be, on which filesystem, and what they would take of it."""
    campaign, host = built.campaign, built.db
    device = campaign.spec.stack.device
    if campaign.spec.stack.server.startswith(EXISTING):
        keys = {w.info.data_key for w in campaign.workloads.values()} - {""}
        of = counted(len(keys), "data set")
        return f"database {DATABASE} of that server: {of}, dropped when the campaign ends"
    if not any(w.info.needs_server or w.info.data_key for w in campaign.workloads.values()):
        return ""
    if isinstance(device, DeviceTable) and device.machine:
        return ""  # on the machine's own disks, which are listed
    sets = len(needed(campaign))
    if isinstance(device, str) and device != "here":
        return f"{device}, formatted for this campaign; {counted(sets, 'data set')}"
    folder = RUNS / campaign.name / "work"
    there = existing_parent(host, folder)
    columns = ("--noheadings", "--output", "FSTYPE,SOURCE", "--target", str(there))
    found = host.run(Action(("findmnt", *columns))).stdout.decode(errors="replace").split()
    free = quantity(ask(host, free_bytes(there)), "B")
    use = f"{counted(sets, 'data set')}, each of them twice"
    if isinstance(device, DeviceTable):
        use = f"{counted(sets, 'lab disk')}, each of at most {device.size}"
        most = sets * size_bytes(device.size, "stack.device.size")
        use += f", together {quantity(most, 'B')}" if sets > 1 else ""
    name = there if isinstance(host, Remote) else folder
    return f"{name} ({' on '.join(found[:2]) or 'unknown filesystem'}, {free} free): {use}"


def plan(  # noqa: PLR0913 - one parameter an option
    spec: SpecName,
    *,
    settings: Set = None,
    budget: Budget = None,
    scale: Scale = None,
    treatment: TriedWith = None,
    settings_tried: Try = None,
    json: Json = False,
) -> None:
    """Show the trials, the settings and the time a campaign would take."""
    source = tried(find(spec, overrides(settings, budget), scale), treatment, settings_tried)
    allowed = ["host", CONSENT, f"{REFORMAT}{source.decode().stack.device}"]
    built = build(source, allowed, Path(), planned=True)
    refuse_occupied(built.db, built.campaign.spec.stack, Path())
    for line in (*built.warnings, *open_campaigns(built.db, built.campaign.spec.stack.host)):
        print_message(f"warning: {line}")
    found = msgspec.structs.replace(of(built, source), place=_place(built))
    print_result(found, lambda: _text(found), json=json)


def of(built: Built, source: SpecSource) -> Plan:
    """Return what a campaign would do."""
    campaign, costs = built.campaign, costs_of(built)
    found = schedule(campaign, costs)
    length_s = campaign.stops.forecast().load_s
    hot = getattr(campaign.design, "reset", None) is Reset.NONE
    return Plan(
        campaign=campaign.name,
        question=campaign.spec.campaign.question,
        server=built.name,
        baseline=campaign.rule.baseline,
        treatments={name: dict(s) for name, s in campaign.treatments.items()},
        workloads=[*campaign.workloads],
        blocks=found.blocks,
        trials=found.trials,
        load_s=found.trials * length_s if found.trials and length_s else None,
        budget_s=campaign.design.budget_s,
        earliest_s=found.earliest_s,
        expected_s=found.expected_s,
        latest_s=found.latest_s,
        prepare_s=costs.prepare_s,
        measured=costs.measured,
        detectable=found.detectable,
        why=campaign.kind.label,
        guess=_guess(found, costs, campaign),
        advice=advice(built, source, costs),
        costs={key: _cost(key, hot=hot) for s in campaign.treatments.values() for key in s},
        devices=_devices(campaign),
        data=campaign.spec.stack.data,
        replica=campaign.spec.stack.replicated,
        soak_s=campaign.soak.seconds if campaign.soak else None,
        spare=found.spare,
    )


def _guess(found: Schedule, costs: Costs, campaign: Campaign) -> str:
    """Return the assumptions of a schedule."""
    repeat, take = f"repeat to {_percent(found.noise_sd)}", f"take {duration(found.trial_s)}"
    text = f"assumed: trials {repeat} and {take}"
    if costs.noise:
        text = f"by the last such campaign here: trials {repeat} and {take}"
    elif costs.measured:
        text = f"trials {take} by the last such campaign here; assumed: they {repeat}"
    size = campaign.design.size
    if size and size.checks and campaign.stops.forecast().checked:
        text += f"; the first {size.checks} trials measure this"
    return text


def advice(built: Built, source: SpecSource, costs: Costs) -> str:
    """Return what a budget that cannot show the margin needs, ``""`` for one that can.

    That is the smallest budget that can, and which treatments this one is enough for.
    """
    campaign = built.campaign
    budget_s, margin = campaign.design.budget_s, campaign.spec.decide.margin
    found = schedule(campaign, costs)
    if budget_s is None or found.shows(margin):
        return ""

    def replan(more: Mapping[str, str]) -> Campaign:
        return replace(source, overrides={**source.overrides, **more}).plan(built.ground)

    enough_s = smallest_budget(campaign, costs, replan)
    fewer = fewer_treatments(campaign, costs, replan)
    text = f"a budget of {duration(budget_s)} is expected to show {_detectable(found.detectable)}"
    text += f", not the margin of {_percent(margin)}"
    if enough_s:
        text += f"; the smallest that is expected to: --budget {_option(enough_s)}"
    if fewer:
        text += f"; it is enough to compare {', '.join(fewer)} alone"
    return text


def _option(seconds: float) -> str:
    """Return a length of time, to the minute, as an option takes it: ``40m``, ``2h30m``."""
    hours, minutes = divmod(round(seconds / 60), 60)
    if hours < 2:  # noqa: PLR2004 - below two hours minutes are easier to compare
        return f"{60 * hours + minutes}m"
    return f"{hours}h{minutes}m" if minutes else f"{hours}h"


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
        name: f"{lab_spec(device, name, key).description}: {key.description}"
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
        lines.append(_filled(f"files       {found.place}"))
    if found.data:
        lines.append(f"data        a copy of {found.data}, which is only read")
    if found.replica:
        lines.append("replica     follows the server, with data on the same filesystem")
    lines.append(_filled(f"design      {found.why}"))
    lines += _price(found)
    return "\n".join(lines) + "\n"


def _price(found: Plan) -> list[str]:
    """Return the lines on trials, time and detectable difference."""
    lines: list[str] = []
    if found.soak_s:
        lines.append(f"soak        the winner for {duration(found.soak_s)} more, after all trials")
    if found.trials:
        blocks = f" in {counted(found.blocks, 'block')}" if found.blocks else ""
        load = f", {duration(found.load_s)} under load" if found.load_s else ""
        lines.append(f"trials      {found.trials}{blocks}, order drawn at random{load}")
    if found.spare:
        lines.append(f"            (at most {found.spare} more, if so many are disturbed)")
    if found.budget_s:
        lines.append(f"budget      {duration(found.budget_s)} of machine time for the trials")
    if found.expected_s is not None and found.earliest_s is not None and found.latest_s is not None:
        by = "as measured here" if found.measured else "assumed"
        times = [duration(s) for s in (found.earliest_s, found.latest_s, found.prepare_s)]
        lines += [
            f"time        {duration(found.expected_s)} expected, from {times[0]} to {times[1]}",
            f"            (with {times[2]} to prepare, {by})",
        ]
    if found.detectable is not None:
        shown = _detectable(found.detectable) if isfinite(found.detectable) else _TOO_SHORT
        lines.append(f"shows       {shown}")
    lines.append(f"            ({found.guess})")
    if found.advice:
        lines.append(_filled(f"warning     {found.advice}"))
    return lines
