"""Campaigns on recorded traces of a real server, with a dose injected into one of two arms."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

import numpy as np

from mydyno.campaign.designs import Adaptive
from mydyno.campaign.race import Race
from mydyno.model import Trial
from mydyno.stats import Estimator, Method, Rule, compare, undecided
from mydyno.stats.result import Row
from mydyno_simulate import Arm
from mydyno_simulate.noise import RATE
from mydyno_simulate.play import play
from real_traces import Traces

DOSES = (0.0, 0.05, -0.05, 0.02, -0.02)
RULE = Rule("replay", "base", {"w": "tps"}, guards={}, method=Method(Estimator.STEADY))
BLOCKS = 12
_SHIFT = 5  # starts of one server, so that two campaigns seldom pair them alike


@dataclass(frozen=True, slots=True)
class Start:
    """One trial: the seconds of a recorded start, those of the arm's dose multiplied."""

    arm: Arm
    idle_s: float
    logs: "np.ndarray[tuple[int], np.dtype[np.float64]]"

    def upto(self, n: int) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        """Return the log throughput of the first `n` seconds."""
        return self.logs[:n]


@dataclass(slots=True)
class Recorded:
    """A host that replays the recording of a real one, in the order of time, from any start on."""

    traces: Traces
    arms: Mapping[str, Arm]
    begin_at: int
    begun: int = field(default=0)

    def begin(self, trial: Trial) -> Start:
        """Return the next recorded start, as the trial's arm."""
        starts = self.traces.starts
        logs = np.log(np.maximum(starts[(self.begin_at + self.begun) % len(starts)], 1.0) / RATE)
        self.begun += 1
        arm = self.arms[trial.treatment]
        return Start(arm, self.traces.idle_s, logs + arm.effect)

    def end(self, load: Start, n: int) -> float:
        """Return the machine time of a trial that ended after `n` seconds."""
        return load.idle_s + n


@dataclass(frozen=True, slots=True)
class Replayed:
    """The result of a campaign for its dose."""

    dose: float
    row: Row
    trials: int
    hours: float


def replays(found: Sequence[Traces], count: int) -> list[Replayed]:
    """Return `count` campaigns for each dose, the servers in turn, on every processor."""
    asked = [(found[n % len(found)], dose, n) for dose in DOSES for n in range(count)]
    with ProcessPoolExecutor() as pool:
        return list(pool.map(_one, *zip(*asked, strict=True), chunksize=10))


def _one(traces: Traces, dose: float, seed: int) -> Replayed:
    arms = {"base": Arm(), "dosed": Arm(math.log1p(dose))}
    design = Race(
        tuple(arms), "base", ("w",), BLOCKS, None, seed, undecided(RULE, tuple(arms)), 3
    )  # fmt: skip
    longest_s = min(map(len, traces.starts)) // 10 * 10
    stops = Adaptive({"w": "tps"}, longest_s + traces.idle_s)
    outcomes = play(design, stops, Recorded(traces, arms, seed * _SHIFT))
    compared = compare(outcomes, RULE, tuple(arms))
    (row,) = (r for r in compared.treatments if r.name == "dosed")
    return Replayed(dose, row, len(outcomes), compared.machine_time_s / 3600)
