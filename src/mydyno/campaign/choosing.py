"""Which design, protocol and rule a spec asks for, and why."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mydyno.analyse import Rule, compare, undecided
from mydyno.campaign.adaptive import Adaptive
from mydyno.campaign.designs import Blocks, Design
from mydyno.campaign.ladder import Ladder
from mydyno.campaign.past import KIND, Past
from mydyno.campaign.plots import plots
from mydyno.campaign.quantities import duration_s
from mydyno.campaign.race import Race
from mydyno.campaign.search import CONFIRMING, HOURS, Search
from mydyno.campaign.spec import DeviceTable, Spec
from mydyno.campaign.stops import Fixed, Stops
from mydyno.campaign.switchback import CHECKS, SHARE, Segments, often
from mydyno.campaign.treatments import less_of, numbered, rungs_of, screened, unknown_value
from mydyno.model import Reset, Settings, SpecError
from mydyno.workloads import Workload

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
_CHECKS = 3  # trials of the baseline that come first and tell what can be seen here at all
_CHECKED_S = 3600.0  # a smaller budget has no room for them
_FULL = 8  # cells of a grid that are all measured; of more, a part tells most (METHOD 5c)
_LEAST_BLOCKS = 4  # that a budget must have room for
_WARMUP_S = _WINDOW_S = 60.0
_WHY = {
    "blocks": "blocks: every treatment once in each",
    "race": "a race: blocks of all treatments that are still undecided, the baseline among them",
    "grid": "a full grid, raced: blocks of all cells that are still undecided",
    "fraction": "a fraction: the cells of the grid that tell most of each factor and of pairs "
    "(D-optimal), raced; what the others do is told by the factors' effects",
    "ladder": "a ladder, raced: blocks of all rungs that are still undecided; then the winner "
    "without each of its parts, which tells their shares",
    "imported": "imported: the runs that others made, and none to follow",
    "screen": "a screen: a Plackett-Burman design and its foldover rank the settings in as few "
    "runs as there can be",
    "switchback": "a switchback: one server is switched between treatments every half minute; a "
    "quarter of the segments are the baseline's",
    "search": "a search: a part of the cells is tried where the best may be, then the likeliest "
    "two are proven against the baseline on fresh trials",
}


@dataclass(frozen=True, slots=True)
class PlanInput:
    """A spec with its names resolved; errors name `place`.

    `lower` names the responses of which the spec says that less is better.
    """

    spec: Spec
    place: str
    treatments: Mapping[str, Settings]
    baseline: str
    workloads: Mapping[str, Workload]
    lower: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class DesignChoice:
    """How a campaign goes on, when its trials end, and what it decides by."""

    design: Design
    stops: Stops
    rule: Rule
    why: str


def choose(asked: PlanInput, name: str) -> DesignChoice:
    """Return what `asked` says, or what is best where it leaves it open; raise `SpecError`."""
    if asked.spec.design.kind == KIND:
        return _past(asked, name)
    if len(asked.treatments) < 2:  # noqa: PLR2004 - a comparison takes two
        raise SpecError(f"{asked.place}: one treatment only; a comparison needs another")
    decide = asked.spec.decide
    fixed = _fixed(asked)
    kind = _kind(asked, is_fixed=fixed is not None)
    responses = {name: w.response for name, w in asked.workloads.items()}
    bias = _bias(asked, kind, is_fixed=fixed is not None)
    adaptive = Adaptive(responses, _most_s(asked, kind), decide.margin, bias, asked.lower)
    stops: Stops = fixed or adaptive
    if kind == "switchback":
        stops = Segments(responses, asked.lower)
    rule = Rule(
        name=name,
        baseline=asked.baseline,
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
        lower=asked.lower,
    )
    return DesignChoice(_design(asked, rule, kind), stops, rule, _WHY[kind])


def _past(asked: PlanInput, name: str) -> DesignChoice:
    """Return what imported logs are compared by: runs as they were, of which none follows."""
    decide, responses = asked.spec.decide, {n: w.response for n, w in asked.workloads.items()}
    unknown = dict.fromkeys(asked.treatments, "unknown")
    rule = Rule(
        name, asked.baseline, responses, decide.margin, decide.guards, unknown, imported=True
    )
    return DesignChoice(Past(), Fixed(asked.spec.protocol.warmup_s or 0.0, 0.0), rule, _WHY[KIND])


def _kind(asked: PlanInput, *, is_fixed: bool) -> str:
    """Return the design's kind (METHOD 5c)."""
    kind, spec = asked.spec.design.kind, asked.spec
    if kind not in KINDS:
        raise SpecError(f"{asked.place}: design.kind: {unknown_value(kind, KINDS)}")
    if is_fixed and kind in {"auto", "ladder", "grid"} and not screened(spec):
        return "blocks"  # the articles' own way
    if kind in {"fraction", "search"}:
        _gridded(asked, kind)
    if kind != "auto":
        return kind
    if screened(spec):
        return "screen"
    if spec.design.rungs:
        return "ladder"
    if not spec.factors:
        return "race"
    large = len(_cells(asked)) > _FULL
    return "search" if large and len(asked.workloads) == 1 else "grid"


def _gridded(asked: PlanInput, kind: str) -> None:
    if not asked.spec.factors:
        raise SpecError(f"{asked.place}: design.kind: a {kind} goes over [factors]; there are none")
    if kind == "search" and len(asked.workloads) > 1:
        raise SpecError(
            f"{asked.place}: design.kind: a search has one load to find the best for, and there "
            f"are {len(asked.workloads)}; keep one, or race them all"
        )


def _design(asked: PlanInput, rule: Rule, kind: str) -> Design:
    spec, names, workloads = asked.spec, tuple(asked.treatments), tuple(asked.workloads)
    blocks = spec.design.blocks if spec.design.blocks is not None else spec.protocol.blocks
    budget_s, reset, seed = _budget_s(asked), _reset(asked), spec.design.seed
    if blocks is not None and blocks < 1:
        raise SpecError(f"{asked.place}: blocks is {blocks}; at least 1, and 3 for a verdict")
    if kind == "search":
        return _search(asked, rule, blocks, budget_s)
    if kind == "screen":
        runs = tuple(name for name, settings in asked.treatments.items() if settings)
        return Blocks(runs, workloads, blocks or 1, budget_s, seed, reset)
    if kind == "blocks":
        settled = _BLOCKS if blocks is None and budget_s is None else blocks
        return Blocks(names, workloads, settled, budget_s, seed, reset, _plots(asked))
    race = _race(asked, rule, blocks, budget_s)
    if kind == "switchback":
        return _switchback(race, settled=blocks is not None)
    if kind != "ladder":
        return race
    less = {rung: list(of) for rung, of in less_of(rungs_of(spec, asked.place)).items()}
    return Ladder(race, less, lambda outcomes: compare(outcomes, rule, names).winner)


def _search(asked: PlanInput, rule: Rule, blocks: int | None, budget_s: float | None) -> Search:
    (workload,) = asked.workloads
    cells = _cells(asked)
    return Search(
        cells=cells,
        baseline=rule.baseline,
        workload=workload,
        response=rule.responses[workload],
        blocks=blocks,
        budget_s=budget_s or HOURS * 3600 * len(cells),
        seed=asked.spec.design.seed,
        undecided=undecided(rule, tuple(asked.treatments)),
        reset=_reset(asked),
        lower=asked.lower,
    )


def _race(asked: PlanInput, rule: Rule, blocks: int | None, budget_s: float | None) -> Race:
    names = tuple(asked.treatments)
    return Race(
        treatments=names,
        baseline=rule.baseline,
        workloads=tuple(asked.workloads),
        blocks=_RACE_BLOCKS if blocks is None and budget_s is None else blocks,
        budget_s=budget_s,
        seed=asked.spec.design.seed,
        undecided=undecided(rule, names),
        checks=_CHECKS if budget_s is None or budget_s >= _CHECKED_S else 0,
        reset=_reset(asked),
        plots=_plots(asked),
    )


def _plots(asked: PlanInput) -> Mapping[str, str]:
    device = asked.spec.stack.device
    one = device.machine if isinstance(device, DeviceTable) else device != "here"
    return plots(asked.treatments, one_device=one)


def _switchback(race: Race, *, settled: bool) -> Race:
    """Return the race as segments of one running server, the baseline's a quarter of them.

    Unless the number of blocks is `settled` or there is a budget, it gets one.
    """
    hot = replace(race, checks=CHECKS, often=often, reset=Reset.NONE, _orders={})
    if settled or race.budget_s is not None:
        return hot
    cells = len(race.treatments) * len(race.workloads)
    return replace(hot, blocks=None, budget_s=SHARE * 3600 * cells)


def _cells(asked: PlanInput) -> dict[str, tuple[int, ...]]:
    return numbered({name: settings for name, settings in asked.treatments.items() if settings})


def _budget_s(asked: PlanInput) -> float | None:
    budget = asked.spec.design.budget
    return duration_s(budget, f"{asked.place}: design.budget") if budget else None


def _most_s(asked: PlanInput, kind: str) -> float | None:
    """Return the seconds that a trial may take if the budget is to have enough of them in it."""
    budget_s = _budget_s(asked)
    if kind == "search":
        cells = len(_cells(asked))
        return Search.most_s(cells, budget_s or HOURS * 3600 * cells)
    if budget_s is None:
        return None
    return budget_s / (_LEAST_BLOCKS * len(asked.treatments) * len(asked.workloads))


def _bias(asked: PlanInput, kind: str, *, is_fixed: bool) -> float | None:
    """Return what a trial's end may still hold of a warm-up, where that is asked for."""
    bias = asked.spec.protocol.bias
    if bias is None:
        return None
    if is_fixed or kind == "switchback":
        how = "trials of fixed length" if is_fixed else "a switchback, which warms up once,"
        raise SpecError(f"{asked.place}: protocol.bias: {how} cannot promise it; remove it")
    if not 0 < bias < 1:
        raise SpecError(
            f"{asked.place}: protocol.bias is {bias:g}: a share of the level above 0 and below 1, "
            "as 0.0025"
        )
    return bias


def _reset(asked: PlanInput) -> Reset:
    told = asked.spec.protocol.reset
    try:
        return Reset(told)
    except ValueError as error:
        known = [r.value for r in Reset]
        raise SpecError(f"{asked.place}: protocol.reset: {unknown_value(told, known)}") from error


def _fixed(asked: PlanInput) -> Fixed | None:
    """Return the fixed lengths that are asked for, if any."""
    protocol, place = asked.spec.protocol, asked.place
    settled = protocol.warmup_s is not None or protocol.window_s is not None
    kind = protocol.kind or ("fixed" if settled else "sequential")
    if kind not in _PROTOCOLS:
        raise SpecError(f"{place}: protocol.kind: {unknown_value(kind, _PROTOCOLS)}")
    if kind == "sequential" and settled:
        raise SpecError(
            f"{place}: protocol.kind: sequential finds warm-up and window by itself; remove "
            'protocol.warmup_s and protocol.window_s, or say kind = "fixed"'
        )
    if kind == "sequential":
        return None
    warmup_s = _WARMUP_S if protocol.warmup_s is None else protocol.warmup_s
    window_s = _WINDOW_S if protocol.window_s is None else protocol.window_s
    if warmup_s < 0 or window_s <= 0:
        raise SpecError(f"{place}: protocol: warmup_s from 0 and window_s above 0, in seconds")
    return Fixed(warmup_s, window_s)
