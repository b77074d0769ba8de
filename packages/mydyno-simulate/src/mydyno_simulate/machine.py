"""A host that runs one trial after another, and knows the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mydyno.model import Reset, Trial
from mydyno_simulate.arms import Arm, Grid, Population, Screen
from mydyno_simulate.noise import (
    Drift,
    Logs,
    Neighbour,
    Noise,
    Runs,
    Seconds,
    Weather,
    seconds,
)


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of `full_s` seconds at full speed, of which `refill` come back each second.

    Empty, the log throughput is lower by `floor`.
    """

    full_s: float
    refill: float = 0.1
    floor: float = 1.2

    def rested(self, left_s: float, seconds: float) -> float:
        """Return what is in it after an idle time."""
        return min(self.full_s, left_s + seconds * self.refill)

    def lasts(self, left_s: float) -> float:
        """Return how many seconds of load it is good for."""
        return left_s / (1.0 - self.refill)

    def spent(self, left_s: float, seconds: float) -> float:
        """Return what is in it after so many seconds of load."""
        return max(0.0, left_s - seconds * (1.0 - self.refill))

    def effect(self, left_s: float, times: Logs) -> Logs:
        """Return the log effect at `times` of a load that began with `left_s` in it."""
        return np.where(times < self.lasts(left_s), 0.0, -self.floor)


_CHUNK = 128  # seconds drawn at once, so that a trial is the same however it is looked at


@dataclass(frozen=True, slots=True)
class World:
    """A kind of host: its noise, the seconds that a restart takes, its bucket if it has one."""

    name: str
    noise: Noise
    restart_s: float = 20.0
    switch_s: float = 0.2
    bucket: Bucket | None = None


@dataclass(slots=True)
class ServerRun:
    """A server from its start to its end."""

    number: int
    effect: float
    age_s: float = 0.0
    slow: float | None = None
    before: Arm | None = None


@dataclass(slots=True)
class SimulatedLoad:
    """One trial under load: seconds of log throughput, drawn as far as they are asked for."""

    machine: "Machine"
    arm: Arm
    chance: np.random.Generator
    idle_s: float
    logs: Logs = field(default_factory=lambda: np.zeros(0))

    def upto(self, n: int) -> Logs:
        """Return the log throughput of the first `n` seconds."""
        wanted = range(len(self.logs), n, _CHUNK)
        if wanted:
            more = [self.machine.seconds(self, at, _CHUNK) for at in wanted]
            self.logs = np.concatenate([self.logs, *more])
        return self.logs[:n]


class Machine:
    """Runs arms; two machines of one world, seed and history give the same."""

    def __init__(self, world: World, arms: Mapping[str, Arm], seed: int) -> None:
        self.world = world
        self.arms = arms
        self.seed = seed
        self.clock_s = 0.0
        self._weather = Weather(world.noise, seed)
        self.left_s = world.bucket.full_s if world.bucket else 0.0
        self._process: ServerRun | None = None

    def begin(self, trial: Trial) -> SimulatedLoad:
        """Bring the trial's arm about and return its load; what that took is on the clock."""
        arm = self.arms[trial.treatment]
        hot = trial.reset is Reset.NONE and self._process is not None
        idle_s = self.world.switch_s if hot else self.world.restart_s
        self._rest(idle_s)
        chance = np.random.default_rng((self.seed, 7, trial.id))
        if not hot:
            run = self.world.noise.runs.draw(chance, arm.run_factor)
            self._process = ServerRun(self.seed * 100_003 + trial.id, run)
        return SimulatedLoad(self, arm, chance, idle_s)

    def end(self, load: SimulatedLoad, n: int) -> float:
        """End a trial after `n` seconds; return the machine time that it took."""
        process = self._running()
        process.age_s += n
        process.before = load.arm
        self.clock_s += n
        if self.world.bucket:
            self.left_s = self.world.bucket.spent(self.left_s, n)
        return load.idle_s + n

    def seconds(self, load: SimulatedLoad, done: int, n: int) -> Logs:
        """Return the `n` seconds of a trial that follow its first `done`; ask for them in order."""
        process = self._running()
        times = seconds(done, n)
        noise, process.slow = self.world.noise.seconds.draw(load.chance, n, process.slow)
        warm = load.arm.warmup.curve(process.age_s + done, n, process.number)
        depth, period_s = load.arm.saw
        saw = depth * (0.5 - np.mod((process.age_s + times) / period_s, 1.0))
        return np.asarray(
            self._effect(load.arm, process, times)
            + process.effect + noise + warm + saw
            + self._weather.at(self.clock_s + done, n)
            + (self.world.bucket.effect(self.left_s, times) if self.world.bucket else 0.0)
        )  # fmt: skip

    def _effect(self, arm: Arm, process: ServerRun, times: Logs) -> Logs:
        """Return the arm's effect, which takes hold slowly after a hot switch."""
        if process.before is None or arm.carry_s == 0:
            return np.full(len(times), arm.effect)
        gone = np.exp(-(times + 0.5) / arm.carry_s)
        return arm.effect + (process.before.effect - arm.effect) * gone

    def _rest(self, seconds: float) -> None:
        self.clock_s += seconds
        if self.world.bucket:
            self.left_s = self.world.bucket.rested(self.left_s, seconds)

    def _running(self) -> ServerRun:
        if self._process is None:
            raise RuntimeError("no trial has begun")
        return self._process


BARE = World("bare", Noise(Seconds(), Runs(), Drift(0.005), Neighbour(0.001)))
CLOUD = World("cloud", Noise(Seconds(), Runs(), Drift(0.03), Neighbour(0.05)))
NOISY = World("noisy", Noise(Seconds(), Runs(), Drift(0.05), Neighbour(0.12)))

# Written when the method was done, of what it was not made for: heavy tails, starts that differ
# more, longer memory, deeper neighbours, warm-ups of a form that no fitted shape has.
HELD_OUT = World(
    "held-out",
    Noise(
        Seconds(0.04, 0.05, 0.95), Runs(0.02, 4.0), Drift(0.04, 3600.0), Neighbour(0.08, 0.2, 60.0)
    ),
    restart_s=30.0,
)
# Written when the looks were planned (ADR 0011), for which the one above had been looked at.
UNSEEN = World(
    "unseen",
    Noise(
        Seconds(0.08, 0.03, 0.85),
        Runs(0.01, 5.0),
        Drift(0.02, 1800.0),
        Neighbour(0.15, 0.15, 300.0),
    ),
    restart_s=45.0,
)
WORLDS = {world.name: world for world in (BARE, CLOUD, NOISY, HELD_OUT, UNSEEN)}

POPULATION = Population()
POPULATIONS = {
    HELD_OUT.name: Population(
        warmups={"none": 0.2, "exponential": 0.2, "two-scale": 0.2, "slow-down": 0.2, "power": 0.2},
        tau_s=(10.0, 120.0),
        unstable=0.1,
    ),
    UNSEEN.name: Population(
        warmups={"none": 0.2, "power": 0.3, "stepwise": 0.3, "two-scale": 0.2},
        tau_s=(5.0, 60.0),
        unstable=0.05,
        unstable_factor=4.0,
    ),
}
"""The populations of worlds that have one of their own."""
GRID = Grid()
SCREEN = Screen()
