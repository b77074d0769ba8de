"""Campaigns of ours on simulated hosts: what each of them got right, wrong, and at what price."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from unittest.mock import patch

import numpy as np
from pydoe import fold, pbdesign

from mydyno.campaign.blocks import Blocks
from mydyno.campaign.designs import Adaptive
from mydyno.campaign.race import Race
from mydyno.campaign.search import Search
from mydyno.campaign.switchback import CHECKS, SHARE, Segments, Switchback
from mydyno.campaign.treatments import STOCK
from mydyno.model import Outcome, Reset
from mydyno.stats import (
    FIRST,
    Estimator,
    Goal,
    Method,
    Rule,
    compare,
    drift,
    sequential,
    undecided,
)
from mydyno.stats.looks import Looks
from mydyno.stats.result import Comparison, Row
from mydyno_simulate import (
    GRID,
    POPULATION,
    POPULATIONS,
    SCREEN,
    WORLDS,
    Arm,
    Machine,
    Population,
    World,
)
from mydyno_simulate.noise import SIGMA, Neighbour, Weather
from mydyno_simulate.play import play

Figures = Mapping[str, float]
ARMS = 60
FEW = 12
HOUR_S = 3600.0
MARGIN = math.log(1.03)
BASE = "base"
_Z99 = 2.3263
_RULE = Rule(
    "bench", BASE, {"w": "tps"}, guards={"latency_p99_s": 0.1}, method=Method(Estimator.STEADY)
)
BLOCKS = 8
# Guards would turn verdicts on the throughput into others; p99 is judged for its coverage.
VERDICTS = replace(_RULE, guards={})


def looking(rule: Rule, blocks: int | None, budget_s: float | None = None) -> Rule:
    """Return a rule of a campaign that so many blocks or a budget end."""
    return replace(rule, method=replace(rule.method, looks=Looks(blocks, budget_s)))


RACED = looking(VERDICTS, BLOCKS)


def population(world: str) -> Population:
    """Return the population that goes with a world."""
    return POPULATIONS.get(world, POPULATION)


@dataclass(frozen=True, slots=True)
class Raced:
    """A race's arms, its outcomes, and the verdicts on it."""

    arms: Mapping[str, Arm]
    outcomes: Sequence[Outcome]
    compared: Comparison


def race(
    world: str, seed: int, *, null: bool = False, bias: float | None = None, count: int = ARMS
) -> Raced:
    """Run a race of so many treatments that need a restart."""
    arms = population(world).arms(seed, count, null=null)
    names = tuple(arms)
    outcomes = played(arms, WORLDS[world], seed, tails=not null, bias=bias)
    return Raced(arms, outcomes, compare(outcomes, RACED, names))


def played(
    arms: Mapping[str, Arm],
    world: World,
    seed: int,
    *,
    tails: bool = False,
    bias: float | None = None,
) -> Sequence[Outcome]:
    """Return the outcomes of a race as a spec has it that asks for no more than a `bias`."""
    names = tuple(arms)
    design = Race(names, BASE, ("w",), BLOCKS, None, seed, undecided(RACED, names), 3)
    stops = Adaptive({"w": "tps"}, bias=bias)
    return play(design, stops, Machine(world, arms, seed), tails=tails)


def aa(world: str, seed: int, bias: float | None = None, count: int = ARMS) -> Figures:
    """Return the figures of a race where no treatment differs from the baseline."""
    found = race(world, seed, null=True, bias=bias, count=count)
    return scored(found.arms, found.compared.treatments) | {"hours": _hours(found.compared)}


def raced(world: str, seed: int, bias: float | None = None) -> Figures:
    """Return the figures of a race of a population of treatments, p99 included."""
    found = race(world, seed, bias=bias)
    figures = dict(scored(found.arms, found.compared.treatments))
    guards = sequential.measure(found.outcomes, looking(_RULE, BLOCKS), "w").guards["latency_p99_s"]
    for name, effect in guards.items():
        _, low, high = effect.interval
        figures["p99_intervals"] = figures.get("p99_intervals", 0) + 1
        inside = low <= math.exp(_p99(found.arms[name]) - _p99(found.arms[BASE])) <= high
        figures["p99_covered"] = figures.get("p99_covered", 0) + inside
    figures["hours"] = _hours(found.compared)
    figures["trials"] = len(found.outcomes)
    return figures


def in_six_hours(world: str, seed: int) -> Figures:
    """Return the figures of six hours of a race of twelve, and how good its winner is."""
    arms = population(world).arms(seed, FEW)
    names, budget_s = tuple(arms), 6 * HOUR_S
    rule = looking(VERDICTS, None, budget_s)
    design = Race(names, BASE, ("w",), None, budget_s, seed, undecided(rule, names), 3)
    outcomes = play(design, Adaptive({"w": "tps"}), Machine(WORLDS[world], arms, seed))
    compared = compare(outcomes, rule, names)
    best = dict(chosen(arms, compared.winner or BASE, BASE))
    best["off"] = best.pop("far")
    return {**scored(arms, compared.treatments), **best, "hours": _hours(compared)}


def ablated(world: str, seed: int) -> Figures:
    """Return the figures of the same race without one part of the method, by part."""
    found = race(world, seed)
    names = list(found.arms)

    def again(rule: Rule = RACED) -> Figures:
        return scored(found.arms, compare(found.outcomes, rule, names).treatments)

    parts = {"all": again()}
    parts["leftover not counted"] = again(
        looking(replace(VERDICTS, method=Method(Estimator.WINDOWS)), BLOCKS)
    )
    with patch.object(drift, "_DRIFTS", (0.0, 0.0, 0.0)):
        parts["no drift"] = again()
    with patch.object(sequential, "nominal", lambda _, __, alpha: alpha):
        parts["each look by itself"] = again()
    with patch.object(sequential, "each_of", lambda *_: 0.025):
        parts["each arm by itself"] = again()
    with patch.object(drift, "SCALES", ((1.0, 1.0),)):
        parts["one variance"] = again()
    for hours, memory_s in (("20 min", 1200.0), ("8 h", 28_800.0)):
        with patch.object(sequential, "TAU_S", memory_s):
            parts[f"memory of {hours}"] = again()
    parts["paired"] = paired(found)
    known = replace(found, outcomes=without_drift(found.outcomes, world, seed))
    parts["drift known"] = scored(found.arms, compare(known.outcomes, RACED, names).treatments)
    return {f"{part}/{name}": v for part, one in parts.items() for name, v in one.items()}


def without_drift(outcomes: Sequence[Outcome], world: str, seed: int) -> Sequence[Outcome]:
    """Return the outcomes as on a host without its slow drift, which is known here."""
    noise = replace(WORLDS[world].noise, neighbour=Neighbour(0.0))
    weather, found, clock_s = Weather(noise, seed), [], 0.0
    for outcome in outcomes:
        (series,) = outcome.series
        clock_s += outcome.machine_time_s
        logs = weather.at(clock_s - series.t_s[-1], round(series.t_s[-1]))
        drifts = logs.reshape(len(series.values), -1).mean(axis=1)
        values = tuple(np.asarray(series.values) / np.exp(drifts))
        found.append(replace(outcome, series=(replace(series, values=values),)))
    return found


def paired(found: Raced) -> Figures:
    """Return the errors of estimates beside the nearest baselines, before and after each trial."""
    trials, steady = sequential.steady_of(found.outcomes, RACED, "w")
    base = [i for i, trial in enumerate(trials) if trial.treatment == BASE]
    gains: dict[str, list[float]] = {}
    for i, trial in enumerate(trials):
        if trial.treatment != BASE:
            sides = ([b for b in base if b < i][-1:], [b for b in base if b > i][:1])
            near = [steady.level[b] for side in sides for b in side]
            gains.setdefault(trial.treatment, []).append(steady.level[i] - float(np.mean(near)))
    truths = {name: arm.effect - found.arms[BASE].effect for name, arm in found.arms.items()}
    several = {name: one for name, one in gains.items() if len(one) > 1}
    squares = sum((float(np.mean(one)) - truths[name]) ** 2 for name, one in several.items())
    return {"estimates": len(several), "squares": squares}


def searched(share: float) -> Callable[[str, int], Figures]:
    """Return the search of a grid of sixty cells for a share of the hour grid's time."""

    def run(world: str, seed: int) -> Figures:
        arms = grid(world, seed)
        names = tuple(arms)
        cells = {name: tuple(map(int, name)) for name in names}
        stock = names[0]
        rule = replace(
            VERDICTS, baseline=stock, method=Method(Estimator.STEADY, Goal.BEST, proving_from=1)
        )
        budget_s = share * HOUR_S * len(names)
        rule = looking(rule, None, budget_s)
        design = Search(
            cells, stock, "w", "tps", None, budget_s, seed, undecided(rule, names)
        )  # fmt: skip
        stops = Adaptive({"w": "tps"}, Search.most_s(len(names), budget_s))
        compared = compare(play(design, stops, Machine(WORLDS[world], arms, seed)), rule, names)
        return chosen(arms, compared.winner or stock, stock) | _claimed(arms, compared)

    return run


def grid(world: str, seed: int) -> dict[str, Arm]:
    """Return a grid's cells by name; the first is stock."""
    return {
        "".join(map(str, cell)): arm for cell, arm in GRID.arms(seed, population(world)).items()
    }


def chosen(arms: Mapping[str, Arm], name: str, stock: str) -> dict[str, float]:
    """Return how good a choice was."""
    regret = max(arm.effect for arm in arms.values()) - arms[name].effect
    return {
        "regret": regret,
        "near": regret <= MARGIN,
        "far": regret > math.log(1.05),
        "worse": name != stock and arms[name].effect <= arms[stock].effect,
    }


def _claimed(arms: Mapping[str, Arm], compared: Comparison) -> dict[str, float]:
    figures: dict[str, float] = {"hours": _hours(compared)}
    for row in compared.treatments:
        if row.verdict == "adopt" and row.effect and row.name == compared.winner:
            truth = arms[row.name].effect - arms[compared.baseline].effect
            figures["claims"] = 1
            figures["overstated"] = math.log(row.effect.ratio) - truth
            figures["covered"] = row.effect.low <= math.exp(truth) <= row.effect.high
    return figures


def screened(world: str, seed: int) -> Figures:
    """Return whether a screen of nineteen settings found the three strong ones."""
    truth = SCREEN.effects(seed)
    rows = fold(pbdesign(len(truth)))
    cells = {
        f"run-{i:02d}": {f"s{k:02d}": str(int(at > 0)) for k, at in enumerate(row)}
        for i, row in enumerate(rows, 1)
    }
    drawn = population(world).arms(seed, len(cells) - 1, null=True)
    arms = {
        name: replace(arm, effect=float(sum(truth[int(k[1:])] for k in cell if cell[k] == "1")))
        for (name, cell), arm in zip(cells.items(), drawn.values(), strict=True)
    }
    rule = replace(VERDICTS, baseline=STOCK, method=Method(Estimator.STEADY, Goal.FACTORS))
    design = Blocks(tuple(cells), ("w",), 1, None, seed)
    stops = Adaptive({"w": "tps"}, alone=True)
    outcomes = play(design, stops, Machine(WORLDS[world], arms, seed))
    first = {FIRST: dict.fromkeys(next(iter(cells.values())), "0")}
    parts = compare(outcomes, rule, list(cells), first | cells).parts
    ranked = sorted(parts, key=lambda part: -abs(math.log(part.effect.ratio)))
    strong = {f"s{i:02d}" for i in np.argsort(-np.abs(truth))[: SCREEN.strong]}
    covered = [p.effect.low <= math.exp(truth[int(p.factor[1:])]) <= p.effect.high for p in parts]
    return {
        "found": {part.factor for part in ranked[: SCREEN.strong]} == strong,
        "runs": len(outcomes),
        "hours": sum(o.machine_time_s for o in outcomes) / HOUR_S,
        "intervals": len(covered),
        "covered": sum(covered),
    }


def switched(world: str, seed: int) -> Figures:
    """Return the figures of a switchback of sixty treatments that need no restart."""
    arms = population(world).arms(seed, ARMS)
    names = tuple(arms)
    budget_s = SHARE * HOUR_S * len(names)
    rule = replace(VERDICTS, method=Method(Estimator.WINDOWS, segment_s=30.0))
    rule = looking(rule, None, budget_s)
    design = Switchback(
        names, BASE, ("w",), None, budget_s, seed, undecided(rule, names), CHECKS, Reset.NONE
    )
    outcomes = play(design, Segments({"w": "tps"}), Machine(WORLDS[world], arms, seed))
    compared = compare(outcomes, rule, names)
    return scored(arms, compared.treatments) | {"hours": _hours(compared)}


def scored(arms: Mapping[str, Arm], rows: Sequence[Row]) -> dict[str, float]:
    """Return counts of right and wrong verdicts of arms whose truth is known."""
    figures = dict.fromkeys(
        ("arms", "adopted", "wrong", "intervals", "covered", "far", "far_undecided", "undecided"),
        0.0,
    ) | dict.fromkeys(("overstated", "estimates", "squares"), 0.0)
    widths = []
    for row in rows:
        if row.name == BASE:
            continue
        truth = arms[row.name].effect - arms[BASE].effect
        figures["arms"] += 1
        figures["undecided"] += row.verdict == "inconclusive"
        if row.effect:
            figures["intervals"] += 1
            figures["covered"] += row.effect.low <= math.exp(truth) <= row.effect.high
            figures["estimates"] += 1
            figures["squares"] += (math.log(row.effect.ratio) - truth) ** 2
            widths.append(math.log(row.effect.high / row.effect.low) / 2)
        if row.verdict == "adopt" and row.effect:
            figures["adopted"] += 1
            figures["wrong"] += truth <= 0
            figures["overstated"] += math.log(row.effect.ratio) - truth
        if row.verdict in {"reject", "equivalent"}:
            figures["wrong"] += truth >= MARGIN
        if truth >= 3 * MARGIN or truth <= -2 * MARGIN:
            figures["far"] += 1
            figures["far_undecided"] += row.verdict == "inconclusive"
    figures["width"] = median(widths) if widths else math.nan
    return figures


def _p99(arm: Arm) -> float:
    """Return the log of an arm's p99 beside that of all others: a closed loop, log-normal."""
    sigma = SIGMA * math.exp(arm.tail)
    return -arm.effect + sigma * _Z99 - sigma**2 / 2


def _hours(compared: Comparison) -> float:
    return compared.machine_time_s / HOUR_S
