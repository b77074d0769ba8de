"""From a spec to a campaign: treatments, cells, design and rule, all names resolved."""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from mydyno.campaign.designs import Blocks, Design
from mydyno.campaign.quantities import duration_s
from mydyno.campaign.spec import Spec, convert, located
from mydyno.campaign.stops import Fixed, Stop
from mydyno.campaign.treatments import STOCK, Ground, no_such, treatments_of
from mydyno.model import Reset, Settings, SpecError
from mydyno.workloads import TOOLS, Workload

_BLOCKS = 5  # without `blocks` or `budget`: the least that shows a few percent on a quiet host


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything an experiment is, but for the place it runs at."""

    spec: Spec
    name: str
    treatments: Mapping[str, Settings]
    baseline: str
    workloads: Mapping[str, Workload]
    design: Design
    stop: Stop

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
    return Campaign(
        spec=spec,
        name=spec.campaign.name or re.sub(r"\.toml$", "", place.rsplit("/", 1)[-1]),
        treatments=treatments,
        baseline=baseline,
        workloads=workloads,
        design=_design(spec, tuple(treatments), tuple(workloads), place),
        stop=_stop(spec, place),
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


def _design(
    spec: Spec, treatments: tuple[str, ...], workloads: tuple[str, ...], place: str
) -> Design:
    kinds = ("auto", "blocks", "ladder", "grid")
    if spec.design.kind not in kinds:
        raise SpecError(f"{place}: design.kind: {no_such(spec.design.kind, kinds)}")
    if len(treatments) < 2:  # noqa: PLR2004 - a comparison takes two
        raise SpecError(f"{place}: one treatment only; a comparison needs another")
    blocks = spec.design.blocks if spec.design.blocks is not None else spec.protocol.blocks
    budget = spec.design.budget
    budget_s = duration_s(budget, f"{place}: design.budget") if budget else None
    if blocks is None and budget_s is None:
        blocks = _BLOCKS
    if blocks is not None and blocks < 1:
        raise SpecError(f"{place}: blocks is {blocks}; at least 1, and 3 for a verdict")
    try:
        reset = Reset(spec.protocol.reset)
    except ValueError as error:
        known = [r.value for r in Reset]
        raise SpecError(
            f"{place}: protocol.reset: {no_such(spec.protocol.reset, known)}"
        ) from error
    return Blocks(treatments, workloads, blocks, budget_s, spec.design.seed, reset)


def _stop(spec: Spec, place: str) -> Stop:
    protocol = spec.protocol
    if protocol.kind != "fixed":
        raise SpecError(f"{place}: protocol.kind: {no_such(protocol.kind, ('fixed',))}")
    if protocol.warmup_s < 0 or protocol.window_s <= 0:
        raise SpecError(f"{place}: protocol: warmup_s from 0 and window_s above 0, in seconds")
    return Fixed(protocol.warmup_s, protocol.window_s)
