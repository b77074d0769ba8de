"""A host that runs one trial after another, and knows the truth."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from mydyno.model import Reset, Trial
from mydyno.testing.simulate.arms import Arm
from mydyno.testing.simulate.credits import Bucket
from mydyno.testing.simulate.noise import Logs, Noise, Weather, seconds

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
class Process:
    """A server from its start to its end."""

    number: int
    effect: float
    age_s: float = 0.0
    slow: float | None = None
    before: Arm | None = None


@dataclass(slots=True)
class Press:
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
    """Runs arms; two machines of one world, seed and history say the same."""

    def __init__(self, world: World, arms: Mapping[str, Arm], seed: int) -> None:
        self.world = world
        self.arms = arms
        self.seed = seed
        self.clock_s = 0.0
        self._weather = Weather(world.noise, seed)
        self.left_s = world.bucket.full_s if world.bucket else 0.0
        self._process: Process | None = None

    def begin(self, trial: Trial) -> Press:
        """Bring the trial's arm about and return its load; what that took is on the clock."""
        arm = self.arms[trial.treatment]
        hot = trial.reset is Reset.NONE and self._process is not None
        idle_s = self.world.switch_s if hot else self.world.restart_s
        self._rest(idle_s)
        chance = np.random.default_rng((self.seed, 7, trial.id))
        if not hot:
            run = self.world.noise.runs.draw(chance, arm.run_factor)
            self._process = Process(self.seed * 100_003 + trial.id, run)
        return Press(self, arm, chance, idle_s)

    def end(self, press: Press, n: int) -> float:
        """End a trial after `n` seconds; return the machine time that it took."""
        process = self._running()
        process.age_s += n
        process.before = press.arm
        self.clock_s += n
        if self.world.bucket:
            self.left_s = self.world.bucket.spent(self.left_s, n)
        return press.idle_s + n

    def seconds(self, press: Press, done: int, n: int) -> Logs:
        """Return the `n` seconds of a trial that follow its first `done`; ask for them in order."""
        process = self._running()
        times = seconds(done, n)
        noise, process.slow = self.world.noise.seconds.draw(press.chance, n, process.slow)
        warm = press.arm.warmup.curve(process.age_s + done, n, process.number)
        depth, period_s = press.arm.saw
        saw = depth * (0.5 - np.mod((process.age_s + times) / period_s, 1.0))
        return np.asarray(
            self._effect(press.arm, process, times)
            + process.effect + noise + warm + saw
            + self._weather.at(self.clock_s + done, n)
            + (self.world.bucket.effect(self.left_s, times) if self.world.bucket else 0.0)
        )  # fmt: skip

    def _effect(self, arm: Arm, process: Process, times: Logs) -> Logs:
        """Return the arm's effect, which takes hold slowly after a hot switch."""
        if process.before is None or arm.carry_s == 0:
            return np.full(len(times), arm.effect)
        gone = np.exp(-(times + 0.5) / arm.carry_s)
        return arm.effect + (process.before.effect - arm.effect) * gone

    def _rest(self, seconds: float) -> None:
        self.clock_s += seconds
        if self.world.bucket:
            self.left_s = self.world.bucket.rested(self.left_s, seconds)

    def _running(self) -> Process:
        if self._process is None:
            raise RuntimeError("no trial has begun")
        return self._process
