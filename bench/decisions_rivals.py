"""How others would decide on the same simulated hosts."""

import math
from collections.abc import Callable, Mapping

import numpy as np
from scipy import stats

from decisions_ours import ARMS, HOUR_S, MARGIN, Figures, chosen, grid, population
from mydyno.model import Trial
from mydyno_simulate import WORLDS, Arm, Machine

Logs = np.ndarray
_BATCH_S = 100


def _runs(world: str, arms: Mapping[str, Arm], seed: int, lengths: tuple[int, int]) -> tuple[
    dict[str, Logs], float
]:  # fmt: skip
    """Return the measured seconds of one run of each arm, one after the other, and the hours."""
    warmup_s, window_s = lengths
    machine = Machine(WORLDS[world], arms, seed)
    logs: dict[str, Logs] = {}
    for i, name in enumerate(arms):
        load = machine.begin(Trial(i, name, "w", 0, seed))
        logs[name] = load.upto(warmup_s + window_s)[warmup_s:]
        machine.end(load, warmup_s + window_s)
    return logs, machine.clock_s / HOUR_S


def point(warmup_s: int, window_s: int) -> Callable[[str, int], Figures]:
    """Return the grid of single runs: what is better by the margin is adopted."""

    def run(world: str, seed: int, *, null: bool = False) -> Figures:
        arms = population(world).arms(seed, ARMS, null=null)
        logs, hours = _runs(world, arms, seed, (warmup_s, window_s))
        base = math.log(np.exp(logs["base"]).mean())
        words = {
            name: "adopt" if math.log(np.exp(rates).mean()) - base >= MARGIN else "reject"
            for name, rates in logs.items()
            if name != "base"
        }
        return _scored(arms, words) | {"hours": hours}

    return run


def welch(world: str, seed: int, *, null: bool = False) -> Figures:
    """Return the hour grid with Welch's test on the means of 100 s, as papers do it."""
    arms = population(world).arms(seed, ARMS, null=null)
    logs, hours = _runs(world, arms, seed, (600, 3000))
    batches = {n: np.exp(rates).reshape(-1, _BATCH_S).mean(axis=1) for n, rates in logs.items()}
    words = {}
    for name, means in batches.items():
        if name != "base":
            p = stats.ttest_ind(means, batches["base"], equal_var=False).pvalue
            better = means.mean() > batches["base"].mean()
            words[name] = "inconclusive" if p > 0.05 else "adopt" if better else "reject"
    return _scored(arms, words) | {"hours": hours}


def hour_grid(bar: float) -> Callable[[str, int], Figures]:
    """Return the hour grid of cells: the best one, if it is above stock by `bar`."""

    def run(world: str, seed: int) -> Figures:
        arms = grid(world, seed)
        stock = next(iter(arms))
        logs, hours = _runs(world, arms, seed, (600, 3000))
        levels = {name: math.log(np.exp(figures).mean()) for name, figures in logs.items()}
        best = max(levels, key=lambda name: levels[name])
        gain = levels[best] - levels[stock]
        if gain < math.log1p(bar):
            return chosen(arms, stock, stock) | {"hours": hours}
        figures = chosen(arms, best, stock) | {"hours": hours, "claims": 1}
        return figures | {"overstated": gain - arms[best].effect + arms[stock].effect}

    return run


class _Bench:
    """A host to try cells on, a run at a time."""

    def __init__(self, world: str, seed: int) -> None:
        self.arms = grid(world, seed)
        self.names = list(self.arms)
        self.machine = Machine(WORLDS[world], self.arms, seed)
        self.count = 0

    def run(self, name: str, seconds: int, warmup_s: int) -> float:
        """Return the log mean of a run behind its warm-up."""
        load = self.machine.begin(Trial(self.count, name, "w", 0, 0))
        self.count += 1
        level = math.log(np.exp(load.upto(seconds)[warmup_s:]).mean())
        self.machine.end(load, seconds)
        return level

    @property
    def spent(self) -> float:
        """Return the share of the hour grid's time that is gone."""
        return self.machine.clock_s / HOUR_S / len(self.names)

    def figures(self, name: str) -> Figures:
        return chosen(self.arms, name, self.names[0]) | {"hours": self.machine.clock_s / HOUR_S}


def random_search(world: str, seed: int) -> Figures:
    """Return random cells of four minutes, the best three repeated three times, the best mean."""
    bench = _Bench(world, seed)
    order = np.random.default_rng((seed, 9)).permutation(bench.names)
    seen: dict[str, list[float]] = {}
    for name in order:
        if bench.spent > 0.06:
            break
        seen.setdefault(str(name), []).append(bench.run(str(name), 240, 60))
    best = sorted(seen, key=lambda name: -seen[name][0])[:3]
    for name in best * 3:
        seen[name].append(bench.run(name, 240, 60))
    return bench.figures(max(best, key=lambda name: float(np.mean(seen[name]))))


def halving(world: str, seed: int) -> Figures:
    """Return successive halving: all cells for a minute and a half, then a third for longer."""
    bench = _Bench(world, seed)
    alive = [str(n) for n in np.random.default_rng((seed, 9)).permutation(bench.names)]
    level: dict[str, float] = {}
    for seconds in (90, 150, 300, 600):
        level = {name: bench.run(name, seconds, seconds // 3) for name in alive}
        alive = sorted(alive, key=lambda name: -level[name])[: max(1, len(alive) // 3)]
    return bench.figures(alive[0])


def tpe(world: str, seed: int) -> Figures:
    """Return Optuna's tree-structured Parzen estimator, the best value it has seen."""
    import optuna  # noqa: PLC0415 - a rival; the others do without it

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    bench = _Bench(world, seed)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)

    def objective(trial: "optuna.Trial") -> float:
        counts = (2, 2, 3, 5)
        cell = [trial.suggest_categorical(f"f{i}", list(range(n))) for i, n in enumerate(counts)]
        return bench.run("".join(map(str, cell)), 240, 60)

    while bench.spent < 0.1 - 260 / HOUR_S / len(bench.names):
        study.optimize(objective, n_trials=1)
    best = study.best_params
    return bench.figures("".join(str(best[f"f{i}"]) for i in range(4)))


def _scored(arms: Mapping[str, Arm], words: Mapping[str, str]) -> dict[str, float]:
    counts = dict.fromkeys(("arms", "adopted", "wrong", "far", "far_undecided"), 0.0)
    for name, word in words.items():
        truth = arms[name].effect - arms["base"].effect
        counts["arms"] += 1
        counts["adopted"] += word == "adopt"
        counts["wrong"] += (word == "adopt" and truth <= 0) or (
            word == "reject" and truth >= MARGIN
        )
        if truth >= 3 * MARGIN or truth <= -2 * MARGIN:
            counts["far"] += 1
            counts["far_undecided"] += word == "inconclusive"
    return counts
