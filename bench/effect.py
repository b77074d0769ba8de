"""False alarms and power of `mydyno effect` on simulated production, beside textbook tests.

`make bench-effect` simulates histories of eight weeks whose truth is known: calm, drifting and wild
ones, each alone and with a control.
"""

import argparse
import multiprocessing
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy import signal, stats

from decisions_table import share
from mydyno.stats.production import DAY_H, WEEK_H, Floats, History, TooLittleError, effect

WEEKS = 8


@dataclass(frozen=True, slots=True)
class World:
    """Hourly log noise `sd` with autocorrelation `phi`, `walk` a day of the server's own level.

    `shared` is the daily walk that a control has too, `slow` its slow stationary part.  `steps` a
    week shift the level by `step`; `bursts` is the share of hours in which a backup or a batch job
    adds up to half.
    """

    sd: float
    phi: float
    walk: float = 0.0
    shared: float = 0.0
    slow: float = 0.0
    steps: float = 0.0
    step: float = 0.0
    bursts: float = 0.0


WORLDS = {
    "calm": World(0.03, 0.6, slow=0.05),
    "drift": World(0.05, 0.7, walk=0.02, shared=0.08, slow=0.05),
    "wild": World(0.05, 0.7, walk=0.02, shared=0.08, slow=0.05, steps=0.5, step=0.05, bursts=0.08),
}


def walk(chance: np.random.Generator, hours: int, a_day: float) -> Floats:
    """Return a random walk with this standard deviation a day."""
    return np.cumsum(chance.normal(0, a_day / np.sqrt(DAY_H), hours)) if a_day else np.zeros(hours)


_SLOW = 0.97  # autocorrelation from hour to hour of what comes and goes in days


def noise(chance: np.random.Generator, hours: int, sd: float, phi: float) -> Floats:
    """Return autocorrelated noise with the tails of Student's t of 5 degrees of freedom."""
    fresh = chance.standard_t(5, hours) * sd * np.sqrt((1 - phi**2) * 3 / 5)
    return np.asarray(signal.lfilter([1.0], [1.0, -phi], fresh))


def pair(seed: int, world: World, hours_after: int, change: float) -> tuple[History, History]:
    """Return a server that changes by a log effect at the end of its weeks, and a control."""
    chance = np.random.default_rng(seed)
    hours = WEEKS * WEEK_H + hours_after
    hour = np.arange(hours) + 490_000 // DAY_H * DAY_H
    angle = 2 * np.pi * (hour % DAY_H) / DAY_H
    weekend = ((hour // DAY_H + 3) % 7 >= 5) * 1.0
    daily = 0.5 * np.sin(angle - 1.5) + 0.2 * np.sin(2 * angle) - 0.4 * weekend
    growth = walk(chance, hours, 0.01)
    common = walk(chance, hours, world.shared) + noise(chance, hours, world.slow, _SLOW)
    found = []
    for treated in (True, False):
        load = np.exp(6 + daily + growth + chance.normal(0, 0.08, hours))
        level = 0.25 * daily + 0.15 * daily**2 + 0.3 * growth + common
        level = level + walk(chance, hours, world.walk)
        level = level + noise(chance, hours, world.sd, world.phi)
        if world.steps:
            at = chance.random(hours) < world.steps / WEEK_H
            level = level + np.cumsum(at * chance.normal(0, world.step, hours))
        level = level + (chance.random(hours) < world.bursts) * chance.uniform(0, 0.5, hours)
        if treated:
            level = level + change * (np.arange(hours) >= WEEKS * WEEK_H)
        found.append(History(hour, np.exp(level - 5), load))
    return found[0], found[1]


def welch(server: History, change_h: int, hours: int, _: History) -> tuple[float, float]:
    """Return Welch's interval of the week before against the hours after."""
    y = np.log(server.value)
    before = y[(server.hour < change_h) & (server.hour >= change_h - WEEK_H)]
    after = y[(server.hour >= change_h) & (server.hour < change_h + hours)]
    found = stats.ttest_ind(after, before, equal_var=False).confidence_interval()
    return float(np.exp(found.low)), float(np.exp(found.high))


def same_hour(server: History, change_h: int, hours: int, _: History) -> tuple[float, float]:
    """Return the paired interval against the same hours of last week."""
    y = np.log(server.value)
    after = y[(server.hour >= change_h) & (server.hour < change_h + hours)]
    at = change_h - WEEK_H
    before = y[(server.hour >= at) & (server.hour < at + hours)]
    found = stats.ttest_rel(after, before).confidence_interval()
    return float(np.exp(found.low)), float(np.exp(found.high))


def alone(server: History, change_h: int, hours: int, _: History) -> tuple[float, float]:
    """Return ours, without a control."""
    found = effect(server, change_h, hours)
    return found.low, found.high


def controlled(server: History, change_h: int, hours: int, control: History) -> tuple[float, float]:
    """Return ours, with a control."""
    found = effect(server, change_h, hours, control)
    return found.low, found.high


Method = Callable[[History, int, int, History], tuple[float, float]]
METHODS: Mapping[str, Method] = {
    "week before, Welch": welch,
    "same hours last week, paired": same_hour,
    "mydyno effect, alone": alone,
    "mydyno effect, control": controlled,
}


def one(task: tuple[str, int, int]) -> dict[str, tuple[bool, bool, float]]:
    """Return of each method: a false alarm, a change of 15 % seen, the interval's half width."""
    name, hours, seed = task
    found = {}
    for method, run in METHODS.items():
        outcome = []
        for change in (0.0, np.log(0.85)):
            server, control = pair(seed, WORLDS[name], hours, change)
            change_h = int(server.hour[0]) + WEEKS * WEEK_H
            try:
                low, high = run(server, change_h, hours, control)
            except TooLittleError:
                low, high = 0.0, np.inf
            outcome.append((low, high))
        (low, high), (_, top) = outcome
        found[method] = (not low <= 1 <= high, top < 1, float(np.sqrt(high / max(low, 1e-9)) - 1))
    return found


def main() -> None:
    """Simulate, and print a table of each world and length."""
    given = argparse.ArgumentParser(description=__doc__)
    given.add_argument("--histories", type=int, default=2000)
    chosen = given.parse_args()
    with multiprocessing.Pool() as pool:
        for name in WORLDS:
            for hours in (24, 72):
                tasks = [(name, hours, seed) for seed in range(chosen.histories)]
                rows = pool.map(one, tasks, chunksize=20)
                for method in METHODS:
                    alarms = sum(row[method][0] for row in rows)
                    seen = sum(row[method][1] for row in rows)
                    width = float(np.median([row[method][2] for row in rows]))
                    print(
                        f"| {name}, {hours} h | {method} | {share(alarms, len(rows))} | "
                        f"{share(seen, len(rows))} | {100 * width:.0f} |",
                        flush=True,
                    )


if __name__ == "__main__":
    sys.exit(main())
