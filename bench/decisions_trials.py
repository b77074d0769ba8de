"""Trials on simulated hosts: warm-ups, burst credits, what never settles, what deciding costs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import median

import numpy as np

from decisions_ours import ARMS, BASE, RACED, Figures, played, population
from mydyno.campaign.designs import Adaptive, Fixed
from mydyno.campaign.race import Race
from mydyno.model import Outcome, Trial, TrialStatus
from mydyno.stats import compare, sequential, steady, undecided
from mydyno.stats.checks import mark_invalid
from mydyno_simulate import WORLDS, Bucket, Machine, Warmup
from mydyno_simulate.play import one, play

_TAUGHT = 4  # trials of each treatment that warm-ups are learned from
_REPEATS = 24  # trials that a bias is the mean of
_NEAR = 0.005


def unsettled(world: str, seed: int, bias: float | None = None) -> Figures:
    """Return whether treatments that never settle were found among twenty, and no others."""
    arms = dict(population(world).arms(seed, 20))
    never = {"a20": Warmup("never", 0.4, 45.0), "a19": Warmup("trend", 0.3, 300.0)}
    arms |= {name: replace(arms[name], warmup=warmup) for name, warmup in never.items()}
    names = tuple(arms)
    outcomes = played(arms, WORLDS[world], seed, bias=bias)
    rows = compare(outcomes, RACED, names).treatments
    words = {row.name: row.verdict for row in rows}
    found = {name for name, word in words.items() if word == "no-steady-state"}
    theirs = [words[name] for name in never]
    return {
        "never": len(never),
        "found": len(found & never.keys()),
        "unstable": theirs.count("unstable"),
        "rejected": theirs.count("reject"),
        "adopted": theirs.count("adopt"),
        "settling": len(names) - 1 - len(never),
        "wrongly": len(found - never.keys()),
    }


def spent(world: str, seed: int) -> Figures:
    """Return whether the end of a disk's burst was flagged, and what was compared across it.

    The host is that of another campaign without a bucket, where nothing may be flagged.
    """
    chance = np.random.default_rng((seed, 11))
    bucket = Bucket(chance.uniform(600.0, 4000.0), 0.1, chance.uniform(0.35, 1.2))
    figures = {"campaigns": 1.0}
    for name, one_world in (
        ("burst", replace(WORLDS[world], bucket=bucket)),
        ("plain", WORLDS[world]),
    ):
        outcomes = played(population(world).arms(seed, 8), one_world, seed)
        valid = [o.status is TrialStatus.OK for o in mark_invalid(outcomes, RACED)]
        figures[f"{name}_void"] = len(valid) - sum(valid)
        if name == "burst":
            states = _states(outcomes, bucket)
            figures["flagged"] = not all(valid)
            figures["crossed"] = len({s for s, ok in zip(states, valid, strict=True) if ok}) > 1
    figures["wrongly"] = figures["plain_void"] > 0
    return figures


def _states(outcomes: Sequence[Outcome], bucket: Bucket) -> list[str]:
    """Return in which state of the disk each trial was: the one it had for most of the time."""
    left_s, states = bucket.full_s, []
    for outcome in outcomes:
        seconds = outcome.series[0].t_s[-1]
        left_s = bucket.rested(left_s, outcome.machine_time_s - seconds)
        states.append("burst" if bucket.lasts(left_s) > seconds / 2 else "spent")
        left_s = bucket.spent(left_s, seconds)
    return states


def warmed(amplitude: float, asked: float | None = None) -> Callable[[str, int], Figures]:
    """Return the residual bias of trials' levels, beside that of dropping ten minutes of twelve.

    What is `asked` is what a spec's protocol.bias would be.

    Each trial is run again with the same noise and no warm-up: what is left of the difference, on
    average over a treatment's trials, is the bias that its warm-up leaves behind.
    """

    def run(world: str, seed: int) -> Figures:
        drawn = population(world).arms(seed, 8)
        arms = {
            n: replace(a, warmup=replace(a.warmup, amplitude=amplitude)) for n, a in drawn.items()
        }
        machine = Machine(WORLDS[world], arms, seed)
        stops = Adaptive({"w": "tps"}, bias=asked)
        outcomes: list[Outcome] = []
        for name in np.random.default_rng(seed).permutation(list(arms) * _TAUGHT):
            trial = Trial(len(outcomes), str(name), "w", 0, seed)
            outcomes.append(one(machine, trial, stops.of(trial, outcomes)))
        still = {n: replace(a, warmup=Warmup("none")) for n, a in arms.items()}
        twins = (machine, Machine(WORLDS[world], still, seed))
        twins[1].clock_s = machine.clock_s
        biases = [_biased(twins, name, outcomes, stops) for name in arms]
        dropped = [a.warmup.bias(600.0, 720.0, seed) for a in arms.values()]
        return {
            "trials": len(arms),
            "near": sum(abs(bias) <= _NEAR for bias, _ in biases),
            "near_dropped": sum(abs(bias) <= _NEAR for bias in dropped),
            "bias": sum(abs(bias) for bias, _ in biases) / len(biases),
            "seconds": sum(seconds for _, seconds in biases) / len(biases),
        }

    return run


def _biased(
    twins: tuple[Machine, Machine], name: str, before: Sequence[Outcome], stops: Adaptive
) -> tuple[float, float]:
    """Return the mean bias of a treatment's trials, and how long they were."""
    stop = stops.of(Trial(len(before), name, "w", 0, 0), before)
    biases, lengths = [], []
    for i in range(_REPEATS):
        trial = Trial(len(before) + 1000 * len(name) + i, name, "w", 0, 0)
        warm = one(twins[0], trial, stop)
        end_s = warm.series[0].t_s[-1]
        still = one(twins[1], trial, Fixed(0.0, end_s))
        series, noise = (sequential.gains(o.series[0])[None, :] for o in (warm, still))
        biases.append(float(steady.level(series)[0] - steady.level(noise)[0]))
        lengths.append(end_s)
    return float(np.mean(biases)), float(np.mean(lengths))


def deciding(world: str, seed: int) -> Figures:
    """Return how long a race of sixty takes to choose its next trial, in milliseconds."""
    arms = population(world).arms(seed, ARMS)
    names = tuple(arms)
    always = {("w", name) for name in names}
    design = Race(names, BASE, ("w",), None, None, seed, undecided(RACED, names), 3)
    forced = replace(design, undecided=lambda _: always, blocks=9)
    outcomes = play(forced, Fixed(60.0, 60.0), Machine(WORLDS[world], arms, seed))
    times = []
    for n in range(len(outcomes) - 40, len(outcomes)):
        began = time.perf_counter()
        forced.next(outcomes[:n])
        times.append((time.perf_counter() - began) * 1e3)
    began = time.perf_counter()
    undecided(RACED, names)(outcomes)
    block_ms = (time.perf_counter() - began) * 1e3
    return {"median_ms": median(times), "block_ms": block_ms, "trials": len(outcomes)}
