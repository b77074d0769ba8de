"""From a spec to a campaign: treatments, cells, design and rule, all names resolved."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mydyno.analyse import Rule, undecided
from mydyno.campaign.adaptive import Adaptive
from mydyno.campaign.designs import Blocks, Design
from mydyno.campaign.quantities import duration_s
from mydyno.campaign.race import Race
from mydyno.campaign.spec import Spec, convert, located
from mydyno.campaign.stops import Fixed, Stops
from mydyno.campaign.treatments import STOCK, Ground, no_such, treatments_of
from mydyno.model import Reset, Settings, SpecError
from mydyno.workloads import TOOLS, Workload

_BLOCKS = 5  # without `blocks` or `budget`: the least that shows a few percent on a quiet host
_RACE_BLOCKS = 8  # and of a race, which most treatments leave before
_CHECKS = 3  # trials of the baseline that come first and tell what can be seen here at all
_WARMUP_S = _WINDOW_S = 60.0
_PROTOCOLS = ("sequential", "fixed")
_RACE_WHY = (
    "a race: blocks of all treatments that are still undecided, the baseline among them; a decided "
    "treatment runs no more"
)
_BLOCKS_WHY = "blocks: every treatment once in each"
_RACES = ("auto", "race", "ladder", "grid")


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything an experiment is, but for the place it runs at."""

    spec: Spec
    name: str
    treatments: Mapping[str, Settings]
    baseline: str
    workloads: Mapping[str, Workload]
    design: Design
    stops: Stops
    rule: Rule
    why: str = ""

    @property
    def digest(self) -> str:
        """Return what must not differ between a campaign and its resumption."""
        told = (self.spec, {name: dict(s) for name, s in self.treatments.items()})
        return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()


def plan(spec: Spec, text: str, place: str, ground: Ground) -> Campaign:
    """Return the campaign that `spec` describes on this `ground`; raise `SpecError`."""
    try:
        treatments = treatments_of(spec, place, ground)
    except SpecError as error:
        raise SpecError(located(str(error), place, text)) from error
    baseline = _baseline(spec, treatments, place)
    treatments = {baseline: treatments.get(baseline, {}), **treatments}
    workloads = {w.name: w for w in _workloads(spec, text, place)}
    if spec.stack.server == "none":
        _no_server(treatments, workloads, place)
    stops = _stops(spec, workloads, place)
    name = spec.campaign.name or re.sub(r"\.toml$", "", place.rsplit("/", 1)[-1])
    rule = Rule(
        name=name,
        baseline=baseline,
        responses={name: w.response for name, w in workloads.items()},
        margin=spec.decide.margin,
        guards=spec.decide.guards,
        weaker_may_win=spec.decide.durability == "weaker",
        sequential=_kind(spec, place, stops) == "race",
        warming=isinstance(stops, Adaptive),
    )
    return Campaign(
        spec=spec,
        name=name,
        treatments=treatments,
        baseline=baseline,
        workloads=workloads,
        design=_design(spec, rule, (tuple(treatments), tuple(workloads)), place),
        stops=stops,
        rule=rule,
        why=_RACE_WHY if rule.sequential else _BLOCKS_WHY,
    )


def _baseline(spec: Spec, treatments: Mapping[str, Settings], place: str) -> str:
    """Return the control: the one named, else the first without settings, else STOCK."""
    named = spec.decide.baseline
    if named is not None and named not in treatments:
        raise SpecError(f"{place}: decide.baseline: {no_such(named, treatments)}")
    bare = next((name for name, settings in treatments.items() if not settings), STOCK)
    return named or bare


def _workloads(spec: Spec, text: str, place: str) -> list[Workload]:
    if not spec.workloads:
        raise SpecError(f"{place}: no load; add [workloads.NAME] with a tool")
    cells: list[Workload] = []
    for name, table in spec.workloads.items():
        fields = dict(table)
        tool, response = fields.pop("tool", ""), fields.pop("response", spec.decide.response)
        if tool not in TOOLS:
            raise SpecError(f"{place}: workloads.{name}.tool: {no_such(str(tool), TOOLS)}")
        params = convert(fields, TOOLS[tool].params, place, text, f"workloads.{name}")
        cells += TOOLS[tool].cells(name, params, response)
    return cells


def _no_server(
    treatments: Mapping[str, Settings], workloads: Mapping[str, Workload], place: str
) -> None:
    """Raise `SpecError` for what cannot be without a server."""
    parts = ("db/mysqld.", "db/alloc.", "db/env.", "db/limits.", "db/net.")
    wanting = [k for s in treatments.values() for k in s if k.startswith(parts)]
    wanting += [name for name, workload in workloads.items() if workload.needs_server]
    if wanting:
        raise SpecError(f'{place}: {wanting[0]} needs a server, but stack.server is "none"')


def _kind(spec: Spec, place: str, stops: Stops) -> str:
    """Return which design is meant: ``blocks`` or ``race``."""
    kinds = (*_RACES, "blocks")
    if spec.design.kind not in kinds:
        raise SpecError(f"{place}: design.kind: {no_such(spec.design.kind, kinds)}")
    fixed = isinstance(stops, Fixed) and spec.design.kind != "race"
    return "blocks" if fixed or spec.design.kind == "blocks" else "race"


def _design(
    spec: Spec, rule: Rule, names: tuple[tuple[str, ...], tuple[str, ...]], place: str
) -> Design:
    treatments, workloads = names
    if len(treatments) < 2:  # noqa: PLR2004 - a comparison takes two
        raise SpecError(f"{place}: one treatment only; a comparison needs another")
    blocks = spec.design.blocks if spec.design.blocks is not None else spec.protocol.blocks
    budget = spec.design.budget
    budget_s = duration_s(budget, f"{place}: design.budget") if budget else None
    if blocks is None and budget_s is None:
        blocks = _RACE_BLOCKS if rule.sequential else _BLOCKS
    if blocks is not None and blocks < 1:
        raise SpecError(f"{place}: blocks is {blocks}; at least 1, and 3 for a verdict")
    reset, seed = _reset(spec, place), spec.design.seed
    if not rule.sequential:
        return Blocks(treatments, workloads, blocks, budget_s, seed, reset)
    open_cells = undecided(rule, treatments)
    return Race(
        treatments, rule.baseline, workloads, blocks, budget_s, seed, open_cells, _CHECKS, reset
    )


def _reset(spec: Spec, place: str) -> Reset:
    try:
        return Reset(spec.protocol.reset)
    except ValueError as error:
        known = [r.value for r in Reset]
        raise SpecError(
            f"{place}: protocol.reset: {no_such(spec.protocol.reset, known)}"
        ) from error


def _stops(spec: Spec, workloads: Mapping[str, Workload], place: str) -> Stops:
    protocol = spec.protocol
    lengths = (protocol.warmup_s, protocol.window_s)
    kind = protocol.kind or ("sequential" if lengths == (None, None) else "fixed")
    if kind not in _PROTOCOLS:
        raise SpecError(f"{place}: protocol.kind: {no_such(kind, _PROTOCOLS)}")
    if kind == "sequential":
        if lengths != (None, None):
            raise SpecError(
                f"{place}: protocol.kind: sequential finds warm-up and window by itself; remove "
                'protocol.warmup_s and protocol.window_s, or say kind = "fixed"'
            )
        return Adaptive({name: w.response for name, w in workloads.items()})
    warmup_s, window_s = (_WARMUP_S if lengths[0] is None else lengths[0]), lengths[1] or _WINDOW_S
    if warmup_s < 0 or window_s <= 0 or lengths[1] == 0:
        raise SpecError(f"{place}: protocol: warmup_s from 0 and window_s above 0, in seconds")
    return Fixed(warmup_s, window_s)
