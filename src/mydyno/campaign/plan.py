"""From a spec to a campaign: treatments, cells, design and rule, all names resolved."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import msgspec

from mydyno.campaign.blocks import BLOCKS, SCREEN, screened
from mydyno.campaign.crash import CRASH
from mydyno.campaign.designs import Design, DesignKind, PlanInput, Soak, Stop, Stops, all_cells
from mydyno.campaign.doses import DIAGNOSE
from mydyno.campaign.importing import IMPORTED
from mydyno.campaign.race import FIXED_LADDER, FRACTION, GRID, LADDER, RACE
from mydyno.campaign.search import SEARCH
from mydyno.campaign.spec import EXISTING, DeviceTable, Spec, convert, located, programs
from mydyno.campaign.switchback import SWITCHBACK, switches
from mydyno.campaign.treatments import (
    STOCK,
    Environment,
    Select,
    credits_of,
    first_of,
    less_of,
    levels_of,
    rungs_of,
    stock,
    stripe_of,
    treatments_of,
)
from mydyno.loads import Workload, tools
from mydyno.model import (
    Durability,
    Outcome,
    RefusedError,
    Reset,
    Settings,
    SpecError,
    Trial,
    unknown_value,
)
from mydyno.model.plugins import with_plugins
from mydyno.model.text import duration_s
from mydyno.stack.doses import CREDITS
from mydyno.stack.layers import ServerPlace, kind_of, layers
from mydyno.stack.protocol import StackSettings, split
from mydyno.stack.zfs import KIND as ZFS
from mydyno.stack.zfs import torn_page_risks
from mydyno.stats import FIRST, Rule, compare
from mydyno.stats.looks import Looks
from mydyno.stats.rule import DIRECTIONS, HIGHER, LOWER, known

AUTO = "auto"
PROVE = "prove"  # as "same", and a crash test follows
DURABILITIES = ("same", "weaker", PROVE)
_FULL = 8  # a grid of more cells is searched instead of measured completely


@cache
def designs() -> Mapping[str, DesignKind]:
    """Return every design by its name in a spec: ours and those of plug-ins.

    Raises `SpecError` for a plug-in that cannot be used.
    """
    own = {
        "blocks": BLOCKS,
        "crash": CRASH,
        "diagnose": DIAGNOSE,
        "fraction": FRACTION,
        "grid": GRID,
        "imported": IMPORTED,
        "ladder": LADDER,
        "ladder-blocks": FIXED_LADDER,
        "race": RACE,
        "screen": SCREEN,
        "search": SEARCH,
        "switchback": SWITCHBACK,
    }
    return with_plugins("mydyno.designs", DesignKind, own)


def runs(spec: Spec) -> bool:
    """Return whether trials are run: not for imported logs."""
    kind = designs().get(spec.design.kind)
    return kind is None or kind.runs


def select_of(spec: Spec) -> Select:
    """Return what selects the cells of the factors' grid that are run."""
    kind = designs().get("screen" if screened(spec) else spec.design.kind)
    return kind.select if kind else all_cells


def _rule(inputs: PlanInput, name: str, kind: DesignKind, stops: Stops) -> Rule:
    """Return the decision rule: what the spec asks for, by the method of the design."""
    decide = inputs.spec.decide
    if decide.durability not in DURABILITIES:
        problem = unknown_value(decide.durability, DURABILITIES)
        raise SpecError(f"{inputs.place}: decide.durability: {problem}")
    return Rule(
        name=name,
        baseline=inputs.baseline,
        responses=inputs.responses,
        margin=decide.margin,
        guards=decide.guards,
        weaker_may_win=decide.durability == "weaker",
        lower=inputs.lower,
        method=stops.method(kind.method),
    )


def _kind(inputs: PlanInput) -> str:
    """Return the name of the design, or of the default one; raise `SpecError`.

    Fixed lengths imply complete blocks.
    """
    kind, spec = inputs.spec.design.kind, inputs.spec
    alone = kind in designs() and designs()[kind].alone
    if runs(spec) and not alone and len(inputs.treatments) < 2:  # noqa: PLR2004 - it takes two
        raise SpecError(f"{inputs.place}: only one treatment; add another to compare it with")
    if kind not in {AUTO, *designs()}:
        problem = unknown_value(kind, sorted({AUTO, *designs()} - {"diagnose"}))
        raise SpecError(f"{inputs.place}: design.kind: {problem}")
    fixed = runs(spec) and not alone and inputs.fixed
    if fixed and kind in {AUTO, "ladder", "grid"} and not screened(spec):
        return "ladder-blocks" if spec.design.rungs and kind != "grid" else "blocks"
    if kind != AUTO:
        return kind
    if screened(spec):
        return "screen"
    if spec.design.rungs:
        return "ladder"
    if not spec.factors:
        return "switchback" if switches(inputs) else "race"
    large = len(inputs.cells) > _FULL
    return "search" if large and len(inputs.workloads) == 1 else "grid"


_LONGEST_NAME = 100  # bytes


@dataclass(frozen=True, slots=True)
class Campaign:
    """A resolved spec: treatments, workloads, design and its kind, stop rules, decision rule."""

    spec: Spec
    name: str
    treatments: Mapping[str, StackSettings]
    workloads: Mapping[str, Workload]
    kind: DesignKind
    design: Design
    stops: Stops
    rule: Rule
    cells: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    soak: Soak | None = None

    @property
    def compared(self) -> list[str]:
        """Return the treatments beside the baseline; of a ladder its rungs, not what it adds."""
        first: Sequence[str] = getattr(self.design, "first", tuple(self.treatments))
        return [name for name in first if name != self.rule.baseline]

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return the trial to run after `history`: the design's, then the soak if there is one."""
        short = [o for o in history if not o.trial.soak]
        trial = self.design.next(short)
        return self.soak.next(history) if trial is None and self.soak else trial

    def stop(self, trial: Trial, history: Sequence[Outcome]) -> Stop:
        """Return the rule that ends the trial that follows `history`."""
        return self.soak.stop if trial.soak and self.soak else self.stops.of(trial, history)

    @property
    def digest(self) -> str:
        """Return a hash of the spec and the treatments: a resumed campaign must have the same."""
        identity = (self.spec, {name: dict(s) for name, s in self.treatments.items()})
        return hashlib.sha256(msgspec.json.encode(identity, order="deterministic")).hexdigest()


def plan(
    spec: Spec, text: str, place: str, environment: Environment, *, stored: bool = False
) -> Campaign:
    """Return the campaign that `spec` describes in this `environment`; raise `SpecError`.

    `stored`: the spec is that of a run directory; a response without a known direction is then
    taken as "higher is better", as older versions did, instead of being refused.
    """
    resolved = resolve(spec, text, place, environment)
    treatments, baseline, workloads = dict(resolved.treatments), resolved.baseline, resolved.loads
    lower = _lower(spec, text, place, ask=not stored and runs(spec))
    if spec.stack.server == "none":
        _no_server(treatments, workloads, place)
    if spec.stack.data:
        _existing(spec, workloads, place, text)
    if spec.stack.replicated:
        _replicated(spec, treatments, workloads, place, text)
    name = name_of(spec, place)
    inputs = PlanInput(spec, place, treatments, baseline, workloads, environment, lower)
    kind = designs()[_kind(inputs)]
    stops = kind.stops(inputs)
    more = {name: split(settings) for name, settings in kind.more(inputs).items()}
    device = spec.stack.device
    bursts = [n for n, s in {**treatments, **more}.items() if credits_of(device, s) > 0]
    classes = _durability({**treatments, **more}, treatments[baseline])
    rule = _rule(inputs, name, kind, stops)
    rule = replace(rule, bursts=frozenset(bursts), durability=classes)
    ends = kind.make(inputs, rule)  # only the design knows what ends it, and its looks follow
    last = ends.blocks and ends.blocks + rule.method.proving_from
    looks = Looks(last, ends.budget_s, once=ends.size is not None and not ends.size.early)
    rule = replace(rule, method=replace(rule.method, looks=looks))
    design = kind.make(inputs, rule)
    treatments |= more
    if torn := torn_page_risks(treatments):
        raise RefusedError(f"{place}: {'; '.join(torn)}")
    cells = _levels(spec, treatments, place, environment)
    soak = _soak(spec, place, rule, tuple(treatments))
    return Campaign(spec, name, treatments, workloads, kind, design, stops, rule, cells, soak)


def _durability(
    treatments: Mapping[str, StackSettings], baseline: StackSettings
) -> Mapping[str, str]:
    """Return the treatments that weaken durability, as far as no server is asked for defaults.

    A design spends no time on what may not win; the report has what was changed in each trial.
    """
    return {
        name: "weaker"
        for name, settings in treatments.items()
        for key, value in settings.items()
        for kind, bare in [kind_of(key)]
        if baseline.get(key) != value
        if kind.durability(bare, baseline.get(key, ""), value, settings) is Durability.WEAKER
    }


@dataclass(frozen=True, slots=True)
class Resolved:
    """The names of a spec, resolved: treatments with their settings, the baseline, the loads."""

    treatments: Mapping[str, StackSettings]
    baseline: str
    loads: Mapping[str, Workload]


def resolve(spec: Spec, text: str, place: str, environment: Environment) -> Resolved:
    """Return what a spec names, whatever its design; raise `SpecError`."""
    programs(spec, place, text)
    try:
        found = treatments_of(spec, place, environment, select_of(spec))
        treatments = {name: split(settings) for name, settings in found.items()}
        bare = split(stock(spec, place, environment))
        for name, settings in treatments.items():
            _refuse_unmet(spec, settings, f"{place}: {name}: ")
    except SpecError as error:
        raise SpecError(located(str(error), place, text)) from error
    baseline = _baseline(spec, treatments, bare, place)
    treatments = {baseline: treatments.get(baseline, bare), **treatments}
    loads = {w.info.name: w for w in _workloads(spec, text, place)}
    return Resolved(treatments, baseline, loads)


def name_of(spec: Spec, place: str) -> str:
    """Return the campaign's name, a single, safe component of a path; raise `SpecError`."""
    name = spec.campaign.name or re.sub(r"\.toml$", "", place.rsplit("/", 1)[-1])
    short = 0 < len(name.encode(errors="replace")) <= _LONGEST_NAME
    if not (short and name.isprintable() and "/" not in name and name[0] not in ".-"):
        raise SpecError(
            f"{place}: campaign.name: {name!r} is used as a folder name; choose one without "
            "a slash that does not begin with a dot or a dash"
        )
    return name


def _soak(spec: Spec, place: str, rule: Rule, treatments: Sequence[str]) -> Soak | None:
    if spec.design.soak is None:
        return None
    seconds = duration_s(spec.design.soak, f"{place}: design.soak")
    return Soak(seconds, lambda outcomes: compare(outcomes, rule, treatments).winner)


def _levels(
    spec: Spec, treatments: Mapping[str, Settings], place: str, environment: Environment
) -> dict[str, dict[str, str]]:
    """Return each treatment's level of each factor: a setting's value, or a bundle on or off.

    A treatment without some of the factors, as STOCK with what is common, has none.
    """
    if spec.factors:
        first = levels_of(first_of(spec, place, environment), spec)
        found = {FIRST: first, **{n: levels_of(own, spec) for n, own in treatments.items()}}
        return {name: of for name, of in found.items() if len(of) == len(spec.factors)}
    rungs = rungs_of(spec, place)
    spare = {name: parts for less in less_of(rungs).values() for name, parts in less.items()}
    used = dict.fromkeys(part for parts in rungs.values() for part in parts)
    return {
        name: {part: "on" if part in parts else "off" for part in used}
        for name, parts in {**spare, **rungs}.items()
        if name in treatments
    }


def _baseline(
    spec: Spec, treatments: Mapping[str, StackSettings], bare: StackSettings, place: str
) -> str:
    """Return the control: the one named, else the first with no settings but `bare`, else STOCK."""
    named = spec.decide.baseline
    if named is not None and named not in treatments:
        raise SpecError(
            f"{place}: decide.baseline: {unknown_value(named, treatments, 'treatment')}"
        )
    return named or next((name for name, own in treatments.items() if own == bare), STOCK)


def _workloads(spec: Spec, text: str, place: str) -> list[Workload]:
    if not spec.workloads:
        raise SpecError(f"{place}: no workload; add [workloads.NAME] with a tool")
    known_tools = tools()
    cells: list[Workload] = []
    for name, table in spec.workloads.items():
        fields = dict(table)
        tool, response = fields.pop("tool", ""), fields.pop("response", spec.decide.response)
        if tool not in known_tools:
            problem = unknown_value(str(tool), known_tools, "tool")
            raise SpecError(f"{place}: workloads.{name}.tool: {problem}")
        fields.pop("direction", None)
        params = convert(fields, known_tools[tool].params, place, text, f"workloads.{name}")
        cells += known_tools[tool].cells(name, params, response)
    return cells


def _lower(spec: Spec, text: str, place: str, *, ask: bool) -> frozenset[str]:
    """Return the responses for which lower is better.

    Raises `SpecError` where the spec contradicts the known direction of a metric, or, with `ask`,
    where it gives no direction for an unknown metric.
    """
    found: dict[str, str] = {}
    for name, table in spec.workloads.items():
        own = "response" in table or "direction" in table
        key = f"workloads.{name}" if own else "decide"
        response = table.get("response", spec.decide.response)
        declared = table.get("direction", spec.decide.direction or None)
        way = known(response) if response else None
        wrong = ""
        if response is None:  # the tool's own, which is known
            wrong = (
                f"{key}.direction: given without a response; add {key}.response" if declared else ""
            )
        elif declared is not None and declared not in DIRECTIONS:
            wrong = f"{key}.direction: {unknown_value(str(declared), DIRECTIONS)}"
        elif declared and way and declared != way:
            wrong = f"{key}.direction: for {response}, {way} is better; remove the key"
        elif not declared and not way and ask:
            wrong = (
                f"{key}.response: unknown whether higher or lower {response!r} is better; "
                f'add {key}.direction = "higher" or "lower"'
            )
        if wrong:
            raise SpecError(located(f"{place}: {wrong}", place, text))
        found[str(response)] = declared or way or HIGHER
    return frozenset(name for name, way in found.items() if way == LOWER)


def _refuse_unmet(spec: Spec, settings: StackSettings, place: str) -> None:
    """Raise `SpecError` for settings without the lab that they need, or invalid on any host."""
    device = spec.stack.device
    machine = isinstance(device, DeviceTable) and device.machine
    for layer, kind in layers().items():
        wanted = settings.of(layer)
        if wanted and kind.needs.lab and not isinstance(device, DeviceTable):
            raise SpecError(
                f"{place}{layer}.{min(wanted)}: needs lab disks; set stack.device to a lab"
            )
        if machine and layer == "disk" and (others := wanted.keys() - {CREDITS}):
            raise SpecError(
                f"{place}disk.{min(others)}: the disks of a virtual machine have their credits to "
                'set and nothing else; use lab = "loop"'
            )
        if layer == "fs" and wanted.get("type") == ZFS and not machine:
            raise SpecError(
                f'{place}fs.type: zfs needs a VM lab; write lab = "vm" into the device of [stack]'
            )
        try:
            if wanted and kind.in_server is None:
                kind.validate(settings, ServerPlace())
        except SpecError as error:
            raise SpecError(f"{place}{error}") from error
    stripe_of(device, settings, place)


def _no_server(
    treatments: Mapping[str, Settings], workloads: Mapping[str, Workload], place: str
) -> None:
    """Raise `SpecError` for a setting or a workload that needs a server."""
    keys = (key for settings in treatments.values() for key in settings)
    wanting = [key for key in keys if key.startswith("db/") and kind_of(key)[0].needs.server]
    wanting += [name for name, workload in workloads.items() if workload.info.needs_server]
    if wanting:
        raise SpecError(f'{place}: {wanting[0]} needs a server, but stack.server is "none"')


def _replicated(
    spec: Spec,
    treatments: Mapping[str, StackSettings],
    workloads: Mapping[str, Workload],
    place: str,
    text: str,
) -> None:
    """Raise `SpecError` where no replica can follow the server."""
    stack, wrong = spec.stack, ""
    kind = designs().get(spec.design.kind)
    if stack.server.startswith(EXISTING) or stack.server == "none" or stack.servers or stack.data:
        wrong = "follows one private server without stack.servers and stack.data; remove one"
    elif not any(w.info.needs_server for w in workloads.values()):
        wrong = "no workload needs a server, so there is nothing to follow; remove the key"
    elif spec.protocol.reset == Reset.NONE.value or kind in {SWITCHBACK, DIAGNOSE, CRASH}:
        wrong = "needs a server that is restarted before each trial; choose another design or reset"
    elif any(s.of("net").get("tls", "off") != "off" for s in treatments.values()):
        wrong = "a server that demands TLS of all sessions has no replica here; remove net.tls"
    if wrong:
        raise SpecError(located(f"{place}: stack.replica: {wrong}", place, text))


def _existing(spec: Spec, workloads: Mapping[str, Workload], place: str, text: str) -> None:
    """Raise `SpecError` where the spec cannot start from an existing data directory."""
    wrong = ""
    if not spec.stack.data.startswith("/"):
        wrong = f"{spec.stack.data!r}: not an absolute path; write one that begins with /"
    elif not any(w.info.needs_server for w in workloads.values()):
        wrong = "no workload needs a server, so none would read it; remove the key"
    if wrong:
        raise SpecError(located(f"{place}: stack.data: {wrong}", place, text))
