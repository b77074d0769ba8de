"""What is compared: arms with known effects, drawn as populations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from mydyno_simulate.warmups import Warmup


@dataclass(frozen=True, slots=True)
class Arm:
    """One treatment and its truth: `effect` is the log ratio of its steady throughput to 1.

    `tail` is the log ratio of its latencies' upper tail beyond what the throughput explains;
    `run_factor` multiplies the spread of its starts (an unstable arm has more);
    `saw` is the peak-to-peak depth and the period in seconds of its checkpoints;
    `carry_s` is the time constant by which it takes hold after a hot switch.
    """

    effect: float = 0.0
    warmup: Warmup = field(default_factory=Warmup)
    tail: float = 0.0
    run_factor: float = 1.0
    saw: tuple[float, float] = (0.06, 60.0)
    carry_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Population:
    """Where arms come from: (share, lowest and highest |log effect|, share of gains) of each class.

    The first class is null: its effects are normal with the standard deviation `null_sd`.
    """

    null: float = 0.40
    null_sd: float = 0.003
    classes: Sequence[tuple[float, float, float, float]] = (
        (0.25, 0.01, 0.045, 0.5),
        (0.25, 0.05, 0.20, 0.5),
        (0.10, 0.26, 0.92, 1.0),
    )
    warmups: Mapping[str, float] = field(
        default_factory=lambda: {"exponential": 0.6, "stepwise": 0.2, "two-scale": 0.2}
    )
    tau_s: tuple[float, float] = (15.0, 90.0)
    unstable: float = 0.0
    unstable_factor: float = 6.0

    def arms(self, seed: int, n: int, *, null: bool = False) -> dict[str, Arm]:
        """Return ``base`` and `n` arms; with `null` none of them differs from it."""
        chance = np.random.default_rng((seed, 4))
        base = self._arm(chance, 0.0)
        rest = [self._arm(chance, 0.0 if null else self._effect(chance)) for _ in range(n)]
        unstable = chance.uniform(size=n) < self.unstable
        rest = [
            replace(arm, run_factor=self.unstable_factor) if bad else arm
            for arm, bad in zip(rest, unstable, strict=True)
        ]
        return {"base": base} | {f"a{i:02d}": arm for i, arm in enumerate(rest, 1)}

    def _effect(self, chance: np.random.Generator) -> float:
        at = chance.uniform()
        if at < self.null:
            return float(chance.normal(0.0, self.null_sd))
        at -= self.null
        for share, low, high, gains in self.classes:
            if at < share:
                sign = 1.0 if chance.uniform() < gains else -1.0
                return sign * float(chance.uniform(low, high))
            at -= share
        return 0.0

    def _arm(self, chance: np.random.Generator, effect: float) -> Arm:
        kinds = list(self.warmups)
        kind = str(chance.choice(kinds, p=[self.warmups[k] for k in kinds]))
        warmup = Warmup(kind, 0.40, float(chance.uniform(*self.tau_s)))
        period = float(chance.uniform(40.0, 80.0))
        return Arm(effect, warmup, tail=float(chance.normal(0.0, 0.05)), saw=(0.06, period))


@dataclass(frozen=True, slots=True)
class Grid:
    """A full product of factors: main effects, and in some seeds interactions of two of them."""

    levels: tuple[int, ...] = (2, 2, 3, 5)
    main_sd: float = 0.06
    interacting: float = 0.40  # of seeds
    interaction_sd: float = 0.04

    def arms(self, seed: int, population: Population) -> dict[tuple[int, ...], Arm]:
        """Return an arm for each cell; the first cell is stock and has the effect 0."""
        chance = np.random.default_rng((seed, 5))
        main = [chance.normal(0.0, self.main_sd, n) for n in self.levels]
        pairs = self._pairs(chance)
        cells = list(product(*(range(n) for n in self.levels)))
        effects = np.array([
            sum(main[f][level] for f, level in enumerate(cell))
            + sum(table[cell[i], cell[j]] for (i, j), table in pairs.items())
            for cell in cells
        ])  # fmt: skip
        drawn = population.arms(seed, len(cells) - 1, null=True)
        return {
            cell: replace(arm, effect=float(effect))
            for cell, arm, effect in zip(cells, drawn.values(), effects - effects[0], strict=True)
        }

    def _pairs(
        self, chance: np.random.Generator
    ) -> dict[tuple[int, int], "np.ndarray[tuple[int, int], np.dtype[np.float64]]"]:
        if chance.uniform() >= self.interacting:
            return {}
        pairs = [(i, j) for i in range(len(self.levels)) for j in range(i)]
        some = chance.choice(len(pairs), size=2, replace=False)
        return {
            pairs[k]: chance.normal(
                0.0, self.interaction_sd, (self.levels[pairs[k][0]], self.levels[pairs[k][1]])
            )
            for k in some
        }


@dataclass(frozen=True, slots=True)
class Screen:
    """Many two-level settings of which few matter."""

    settings: int = 19
    strong: int = 3
    strong_log: tuple[float, float] = (0.06, 0.20)
    weak_sd: float = 0.006

    def effects(self, seed: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        """Return each setting's log effect when switched on; the strong ones are anywhere."""
        chance = np.random.default_rng((seed, 6))
        effects = chance.normal(0.0, self.weak_sd, self.settings)
        places = chance.choice(self.settings, self.strong, replace=False)
        signs = chance.choice((-1.0, 1.0), self.strong)
        effects[places] = signs * chance.uniform(*self.strong_log, self.strong)
        return effects
