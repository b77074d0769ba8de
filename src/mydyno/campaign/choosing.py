"""Which design, stop rules and decision rule a spec asks for, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mydyno.campaign.adaptive import Adaptive
from mydyno.campaign.designs import Blocks, Design, Fixed, Stops, plots
from mydyno.campaign.ladder import Ladder
from mydyno.campaign.past import KIND, Past
from mydyno.campaign.race import Race
from mydyno.campaign.search import CONFIRMING, HOURS, Search
from mydyno.campaign.spec import DeviceTable, Spec
from mydyno.campaign.switchback import CHECKS, SHARE, Segments, often
from mydyno.campaign.treatments import less_of, numbered, rungs_of, screened
from mydyno.loads import Workload
from mydyno.model import Reset, Settings, SpecError, unknown_value
from mydyno.model.text import duration_s
from mydyno.stats import Rule, compare, undecided

KINDS = (
    "auto",
    "blocks",
    "fraction",
    "grid",
    "imported",
    "ladder",
    "race",
    "screen",
    "search",
    "switchback",
)
_PROTOCOLS = ("sequential", "fixed")
_BLOCKS = 5  # without `blocks` or `budget`: the least that shows a few percent on a quiet host
_RACE_BLOCKS = 8  # and of a race, which most treatments leave before
_CHECKS = 3  # trials of the baseline that come first: they show the noise of this host
_CHECKED_S = 3600.0  # a smaller budget has no room for them
_FULL = 8  # a grid of more cells is searched instead of measured completely
_LEAST_BLOCKS = 4  # a budget must have room for so many blocks
_WARMUP_S = _WINDOW_S = 60.0
_WHY = {
    "blocks": "blocks: every treatment once in each",
    "race": "a race: blocks of all treatments that are still undecided, the baseline among them",
    "grid": "a full grid, raced: blocks of all cells that are still undecided",
    "fraction": "a D-optimal fraction of the grid, raced: the cells that estimate main effects and "
    "two-factor interactions best; the other cells are predicted from them",
    "ladder": "a ladder, raced: blocks of all rungs that are still undecided; then the winner "
    "without each of its parts, to show each part's share",
    "imported": "imported: existing runs are compared, and no new trials are run",
    "screen": "a screen: a Plackett-Burman design and its foldover rank the settings in the "
    "smallest number of runs",
    "switchback": "a switchback: one running server is switched between treatments every half "
    "minute; a quarter of the segments are the baseline's",
    "search": "a search: the cells that are likely to be best are tried, then the two best are "
    "compared with the baseline in new trials",
}


@dataclass(frozen=True, slots=True)
class PlanInput:
    """A spec with its names resolved; errors name `place`.

    `lower` names the responses for which lower is better.
    """

    spec: Spec
    place: str
    treatments: Mapping[str, Settings]
    baseline: str
    workloads: Mapping[str, Workload]
    lower: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DesignChoice:
    """The design, the stop rules of its trials, and the decision rule; `why` explains them."""

    design: Design
    stops: Stops
    rule: Rule
    why: str


def choose(inputs: PlanInput, name: str) -> DesignChoice:
    """Return the design that `inputs` names, or the default one; raise `SpecError`."""
    if inputs.spec.design.kind == KIND:
        return _past(inputs, name)
    if len(inputs.treatments) < 2:  # noqa: PLR2004 - a comparison takes two
        raise SpecError(f"{inputs.place}: only one treatment; add another to compare it with")
    decide = inputs.spec.decide
    fixed = _fixed(inputs)
    kind = _kind(inputs, is_fixed=fixed is not None)
    responses = {name: w.response for name, w in inputs.workloads.items()}
    bias = _bias(inputs, kind, is_fixed=fixed is not None)
    adaptive = Adaptive(responses, _most_s(inputs, kind), decide.margin, bias, inputs.lower)
    stops: Stops = fixed or adaptive
    if kind == "switchback":
        stops = Segments(responses, inputs.lower)
    rule = Rule(
        name=name,
        baseline=inputs.baseline,
        responses=responses,
        margin=decide.margin,
        guards=decide.guards,
        weaker_may_win=decide.durability == "weaker",
        sequential=kind not in {"blocks", "screen"},
        warming=isinstance(stops, Adaptive),
        proving_from=CONFIRMING if kind == "search" else 0,
        choosing=kind == "search",
        screening=kind == "screen",
        hot=kind == "switchback",
        lower=inputs.lower,
    )
    return DesignChoice(_design(inputs, rule, kind), stops, rule, _WHY[kind])


def _past(inputs: PlanInput, name: str) -> DesignChoice:
    """Return the choice for imported logs: their runs are compared, and no trial follows."""
    decide, responses = inputs.spec.decide, {n: w.response for n, w in inputs.workloads.items()}
    unknown = dict.fromkeys(inputs.treatments, "unknown")
    rule = Rule(
        name, inputs.baseline, responses, decide.margin, decide.guards, unknown, imported=True
    )
    return DesignChoice(Past(), Fixed(inputs.spec.protocol.warmup_s or 0.0, 0.0), rule, _WHY[KIND])


def _kind(inputs: PlanInput, *, is_fixed: bool) -> str:
    """Return the design's kind (METHOD 5c)."""
    kind, spec = inputs.spec.design.kind, inputs.spec
    if kind not in KINDS:
        raise SpecError(f"{inputs.place}: design.kind: {unknown_value(kind, KINDS)}")
    if is_fixed and kind in {"auto", "ladder", "grid"} and not screened(spec):
        return "blocks"  # fixed lengths imply complete blocks
    if kind in {"fraction", "search"}:
        _gridded(inputs, kind)
    if kind != "auto":
        return kind
    if screened(spec):
        return "screen"
    if spec.design.rungs:
        return "ladder"
    if not spec.factors:
        return "race"
    large = len(_cells(inputs)) > _FULL
    return "search" if large and len(inputs.workloads) == 1 else "grid"


def _gridded(inputs: PlanInput, kind: str) -> None:
    if not inputs.spec.factors:
        raise SpecError(f"{inputs.place}: design.kind: a {kind} needs [factors]; add them")
    if kind == "search" and len(inputs.workloads) > 1:
        raise SpecError(
            f"{inputs.place}: design.kind: a search takes one workload, not "
            f"{len(inputs.workloads)}; keep one, or use a race"
        )


def _design(inputs: PlanInput, rule: Rule, kind: str) -> Design:
    spec, names, workloads = inputs.spec, tuple(inputs.treatments), tuple(inputs.workloads)
    blocks = spec.design.blocks if spec.design.blocks is not None else spec.protocol.blocks
    budget_s, reset, seed = _budget_s(inputs), _reset(inputs), spec.design.seed
    if blocks is not None and blocks < 1:
        raise SpecError(
            f"{inputs.place}: blocks = {blocks}: must be at least 1, and 3 for a verdict"
        )
    if kind == "search":
        return _search(inputs, rule, blocks, budget_s)
    if kind == "screen":
        runs = tuple(name for name, settings in inputs.treatments.items() if settings)
        return Blocks(runs, workloads, blocks or 1, budget_s, seed, reset)
    if kind == "blocks":
        settled = _BLOCKS if blocks is None and budget_s is None else blocks
        return Blocks(names, workloads, settled, budget_s, seed, reset, _plots(inputs))
    race = _race(inputs, rule, blocks, budget_s)
    if kind == "switchback":
        return _switchback(race, settled=blocks is not None)
    if kind != "ladder":
        return race
    less = {rung: list(of) for rung, of in less_of(rungs_of(spec, inputs.place)).items()}
    return Ladder(race, less, lambda outcomes: compare(outcomes, rule, names).winner)


def _search(inputs: PlanInput, rule: Rule, blocks: int | None, budget_s: float | None) -> Search:
    (workload,) = inputs.workloads
    cells = _cells(inputs)
    return Search(
        cells=cells,
        baseline=rule.baseline,
        workload=workload,
        response=rule.responses[workload],
        blocks=blocks,
        budget_s=budget_s or HOURS * 3600 * len(cells),
        seed=inputs.spec.design.seed,
        undecided=undecided(rule, tuple(inputs.treatments)),
        reset=_reset(inputs),
        lower=inputs.lower,
    )


def _race(inputs: PlanInput, rule: Rule, blocks: int | None, budget_s: float | None) -> Race:
    names = tuple(inputs.treatments)
    return Race(
        treatments=names,
        baseline=rule.baseline,
        workloads=tuple(inputs.workloads),
        blocks=_RACE_BLOCKS if blocks is None and budget_s is None else blocks,
        budget_s=budget_s,
        seed=inputs.spec.design.seed,
        undecided=undecided(rule, names),
        checks=_CHECKS if budget_s is None or budget_s >= _CHECKED_S else 0,
        reset=_reset(inputs),
        plots=_plots(inputs),
    )


def _plots(inputs: PlanInput) -> Mapping[str, str]:
    device = inputs.spec.stack.device
    one = device.machine if isinstance(device, DeviceTable) else device != "here"
    return plots(inputs.treatments, one_device=one)


def _switchback(race: Race, *, settled: bool) -> Race:
    """Return the race as segments of one running server, the baseline's a quarter of them.

    Unless the number of blocks is `settled` or there is a budget, it gets one.
    """
    hot = replace(race, checks=CHECKS, often=often, reset=Reset.NONE, _orders={})
    if settled or race.budget_s is not None:
        return hot
    cells = len(race.treatments) * len(race.workloads)
    return replace(hot, blocks=None, budget_s=SHARE * 3600 * cells)


def _cells(inputs: PlanInput) -> dict[str, tuple[int, ...]]:
    return numbered({name: settings for name, settings in inputs.treatments.items() if settings})


def _budget_s(inputs: PlanInput) -> float | None:
    budget = inputs.spec.design.budget
    return duration_s(budget, f"{inputs.place}: design.budget") if budget else None


def _most_s(inputs: PlanInput, kind: str) -> float | None:
    """Return the longest trial, in seconds, that leaves room for enough trials in the budget."""
    budget_s = _budget_s(inputs)
    if kind == "search":
        cells = len(_cells(inputs))
        return Search.most_s(cells, budget_s or HOURS * 3600 * cells)
    if budget_s is None:
        return None
    return budget_s / (_LEAST_BLOCKS * len(inputs.treatments) * len(inputs.workloads))


def _bias(inputs: PlanInput, kind: str, *, is_fixed: bool) -> float | None:
    """Return the share of a warm-up that may remain at a trial's end, if the spec limits it."""
    bias = inputs.spec.protocol.bias
    if bias is None:
        return None
    if is_fixed or kind == "switchback":
        how = "trials of fixed length" if is_fixed else "a switchback, which warms up once,"
        raise SpecError(f"{inputs.place}: protocol.bias: {how} cannot limit it; remove the key")
    if not 0 < bias < 1:
        raise SpecError(
            f"{inputs.place}: protocol.bias = {bias:g}: must be a ratio above 0 and below 1, "
            "for example 0.0025"
        )
    return bias


def _reset(inputs: PlanInput) -> Reset:
    named = inputs.spec.protocol.reset
    try:
        return Reset(named)
    except ValueError as error:
        known = [r.value for r in Reset]
        raise SpecError(f"{inputs.place}: protocol.reset: {unknown_value(named, known)}") from error


def _fixed(inputs: PlanInput) -> Fixed | None:
    """Return the fixed lengths that the spec gives, if any."""
    protocol, place = inputs.spec.protocol, inputs.place
    settled = protocol.warmup_s is not None or protocol.window_s is not None
    kind = protocol.kind or ("fixed" if settled else "sequential")
    if kind not in _PROTOCOLS:
        raise SpecError(f"{place}: protocol.kind: {unknown_value(kind, _PROTOCOLS)}")
    if kind == "sequential" and settled:
        raise SpecError(
            f"{place}: protocol.kind: sequential chooses warm-up and window itself; remove "
            'protocol.warmup_s and protocol.window_s, or set kind = "fixed"'
        )
    if kind == "sequential":
        return None
    warmup_s = _WARMUP_S if protocol.warmup_s is None else protocol.warmup_s
    window_s = _WINDOW_S if protocol.window_s is None else protocol.window_s
    if warmup_s < 0 or window_s <= 0:
        raise SpecError(
            f"{place}: protocol: warmup_s must be 0 or more, window_s above 0, in seconds"
        )
    return Fixed(warmup_s, window_s)
