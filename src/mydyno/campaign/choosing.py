"""The designs that a spec may name, and which one it gets without naming one."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from mydyno.campaign.blocks import BLOCKS, SCREEN, screened
from mydyno.campaign.designs import Design, DesignKind, PlanInput, Stops, all_cells
from mydyno.campaign.ladder import LADDER
from mydyno.campaign.past import IMPORTED
from mydyno.campaign.race import FRACTION, GRID, RACE
from mydyno.campaign.search import SEARCH
from mydyno.campaign.spec import Spec
from mydyno.campaign.switchback import SWITCHBACK
from mydyno.campaign.treatments import Select
from mydyno.model import Settings, SpecError, unknown_value
from mydyno.model.plugins import with_plugins
from mydyno.stats import Rule

AUTO = "auto"
_FULL = 8  # a grid of more cells is searched instead of measured completely


@cache
def designs() -> Mapping[str, DesignKind]:
    """Return every design by its name in a spec: ours and those of plug-ins.

    Raises `SpecError` for a plug-in that cannot be used.
    """
    own = {
        "blocks": BLOCKS,
        "fraction": FRACTION,
        "grid": GRID,
        "imported": IMPORTED,
        "ladder": LADDER,
        "race": RACE,
        "screen": SCREEN,
        "search": SEARCH,
        "switchback": SWITCHBACK,
    }
    return with_plugins("mydyno.designs", DesignKind, own)


@dataclass(frozen=True, slots=True)
class DesignChoice:
    """The design, the stop rules of its trials, and the decision rule; `why` explains them.

    `more` are treatments that the design needs besides those of the spec.
    """

    design: Design
    stops: Stops
    rule: Rule
    why: str
    more: Mapping[str, Settings]


def runs(spec: Spec) -> bool:
    """Return whether trials are run: not for imported logs."""
    kind = designs().get(spec.design.kind)
    return kind is None or kind.runs


def select_of(spec: Spec) -> Select:
    """Return what selects the cells of the factors' grid that are run."""
    kind = designs().get("screen" if screened(spec) else spec.design.kind)
    return kind.select if kind else all_cells


def choose(inputs: PlanInput, name: str) -> DesignChoice:
    """Return the design that `inputs` names, or the default one; raise `SpecError`."""
    if runs(inputs.spec) and len(inputs.treatments) < 2:  # noqa: PLR2004 - a comparison takes two
        raise SpecError(f"{inputs.place}: only one treatment; add another to compare it with")
    kind = designs()[_kind(inputs)]
    stops, decide = kind.stops(inputs), inputs.spec.decide
    plain = Rule(
        name=name,
        baseline=inputs.baseline,
        responses=inputs.responses,
        margin=decide.margin,
        guards=decide.guards,
        weaker_may_win=decide.durability == "weaker",
        sequential=True,
        warming=stops.warming,
        lower=inputs.lower,
    )
    rule = kind.rule(inputs, plain)
    return DesignChoice(kind.make(inputs, rule), stops, rule, kind.label, kind.more(inputs))


def _kind(inputs: PlanInput) -> str:
    """Return the name of the design; fixed lengths imply complete blocks."""
    kind, spec = inputs.spec.design.kind, inputs.spec
    if kind not in {AUTO, *designs()}:
        problem = unknown_value(kind, sorted({AUTO, *designs()}))
        raise SpecError(f"{inputs.place}: design.kind: {problem}")
    fixed = runs(spec) and inputs.fixed
    if fixed and kind in {AUTO, "ladder", "grid"} and not screened(spec):
        return "blocks"
    if kind != AUTO:
        return kind
    if screened(spec):
        return "screen"
    if spec.design.rungs:
        return "ladder"
    if not spec.factors:
        return "race"
    large = len(inputs.cells) > _FULL
    return "search" if large and len(inputs.workloads) == 1 else "grid"
