"""How often decisions are right, and at what price: ours and others', on simulated hosts."""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from pathlib import Path

import decisions_ours as ours
import decisions_results as results
import decisions_rivals as rivals
import decisions_small as small
import decisions_table as table
import decisions_trials as trials

WORLDS = ("bare", "cloud", "noisy")
UNSEEN = {"aa", "race", "aa-12", "race-12", "search-0.100", "hot"}
HELD_OUT = {
    "aa",
    "race",
    "aa-12",
    "race-12",
    "search-0.100",
    "hour-grid-best",
    "hot",
    "screen",
    "never",
    "credits",
}
SHARES = (0.05, 0.075, 0.10, 0.15)
BIAS = 0.0025  # protocol.bias, where a spec asks for more than the usual
RESULTS = Path(__file__).parent / "results"
_CHUNK = 20
_AGAIN = (3, 41)


@dataclass(frozen=True, slots=True)
class Cell:
    """Campaigns of one kind in one world; `seeds` of them."""

    kind: str
    world: str
    seeds: int
    run: Callable[[str, int], ours.Figures]

    @property
    def name(self) -> str:
        return f"{self.kind}@{self.world}"


def cells(main: int, others: int) -> list[Cell]:
    """Return all cells, the main ones first."""
    kinds: list[tuple[str, int, Callable[[str, int], ours.Figures]]] = [
        ("aa", main, ours.aa),
        ("race", main, ours.raced),
        ("aa-12", main, partial(ours.aa, count=ours.FEW)),
        ("race-12", main, ours.in_six_hours),
        ("search-0.100", main, ours.searched(0.10)),
        ("hour-grid-best", main, rivals.hour_grid(0.0)),
        ("hot", others, ours.switched),
        ("screen", main, ours.screened),
        ("never", others, trials.unsettled),
        ("credits", others, trials.spent),
        *(
            (f"pair-{kind}-{minutes}m-{percent}", others, small.pair(kind, minutes, percent))
            for kind, lengths in small.MINUTES.items()
            for minutes in lengths
            for percent in small.EFFECTS
        ),
        ("forecast", others, small.foretold),
        ("warm-up", others, trials.warmed(0.40)),
        ("warm-up-preloaded", others, trials.warmed(0.10)),
        ("aa-bias", others, partial(ours.aa, bias=BIAS)),
        ("race-bias", others, partial(ours.raced, bias=BIAS)),
        ("never-bias", others, partial(trials.unsettled, bias=BIAS)),
        ("warm-up-bias", others, trials.warmed(0.40, BIAS)),
        ("warm-up-preloaded-bias", others, trials.warmed(0.10, BIAS)),
        ("ablation", others, ours.ablated),
        ("hour-grid-3%", others, rivals.hour_grid(0.03)),
        *((f"search-{s:.3f}", others, ours.searched(s)) for s in SHARES if s != 0.10),
        ("random-search", others, rivals.random_search),
        ("halving", others, rivals.halving),
        ("tpe", others, rivals.tpe),
        ("hour-point", others, rivals.point(600, 3000)),
        ("hour-point-aa", others, partial(rivals.point(600, 3000), null=True)),
        ("4-min-point", others, rivals.point(60, 180)),
        ("4-min-point-aa", others, partial(rivals.point(60, 180), null=True)),
        ("hour-welch", others, rivals.welch),
        ("hour-welch-aa", others, partial(rivals.welch, null=True)),
        ("next", 3, trials.deciding),
    ]
    aside = {"held-out": HELD_OUT, "unseen": UNSEEN}
    return [
        Cell(kind, world, min(seeds, others) if world in aside else seeds, run)
        for kind, seeds, run in kinds
        for world in (*WORLDS, *(world for world, of in aside.items() if kind in of))
    ]


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000, help="of each main cell (1000)")
    parser.add_argument("--others", type=int, default=200, help="of rivals and ablations (200)")
    parser.add_argument("--only", action="append", help="only kinds that begin so")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--minutes", type=float, help="stop after so long; run again to go on")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder of the saved results")
    parser.add_argument("--again", action="store_true", help="run some of what is there again")
    parser.add_argument("--table", action="store_true", help="print what is there, run nothing")
    return parser.parse_args()


def _one(name: str, seed: int, sizes: tuple[int, int]) -> ours.Figures:
    cell = next(c for c in cells(*sizes) if c.name == name)
    began_s, cpu_s = time.perf_counter(), time.process_time()
    try:
        figures = dict(cell.run(cell.world, seed))
    except ImportError:
        return {"seed": seed, "absent": 1}
    spent = {"wall_s": time.perf_counter() - began_s, "cpu_s": time.process_time() - cpu_s}
    return {"seed": seed, **figures, **spent}


def left(folder: Path, found: list[Cell]) -> Iterator[tuple[Cell, list[int]]]:
    """Yield chunks of seeds that are still to be run, a chunk of each cell in turn."""
    todo = {}
    for cell in found:
        there = results.read(folder, cell.name, cell.seeds)
        todo[cell.name] = (cell, [s for s in range(1, cell.seeds + 1) if s not in there])
    while any(seeds for _, seeds in todo.values()):
        for name, (cell, seeds) in todo.items():
            if seeds:
                yield cell, seeds[:_CHUNK]
                todo[name] = (cell, seeds[_CHUNK:])


def again(folder: Path, found: list[Cell], jobs: int) -> None:
    """Run seeds of each cell again; where all results are equal, what is there counts as ours."""
    differing: list[str] = []
    with ProcessPoolExecutor(jobs) as pool:
        for cell in found:
            there = results.read(folder, cell.name, cell.seeds)
            seeds = [s for s in _AGAIN if s in there and cell.kind != "next"]  # next is a timing
            rerun = pool.map(_one, repeat(cell.name), seeds, repeat((cell.seeds, cell.seeds)))
            pairs = zip(seeds, map(_decided, rerun), strict=True)
            differing += [f"{cell.name}, seed {s}" for s, new in pairs if new != _decided(there[s])]
    if differing:
        sys.exit(f"{folder}: decided otherwise now: {'; '.join(differing)}")
    results.renewed(folder)


def _decided(figures: ours.Figures) -> dict[str, float]:
    return {k: round(float(v), 9) for k, v in figures.items() if k not in {"wall_s", "cpu_s"}}


def main() -> None:
    asked = options()
    sizes = (asked.seeds, asked.others)
    if asked.again:  # of all cells: the saved results are accepted or refused together
        again(asked.results, cells(*sizes), asked.jobs)
        return
    found = [c for c in cells(*sizes) if not asked.only or c.kind.startswith(tuple(asked.only))]
    results.opened(asked.results)
    began_s = time.monotonic()
    if not asked.table:
        with ProcessPoolExecutor(asked.jobs) as pool:
            for cell, seeds in left(asked.results, found):
                if asked.minutes and time.monotonic() - began_s > asked.minutes * 60:
                    sys.stderr.write("time is up; run the same command to go on\n")
                    break
                sys.stderr.write(f"{cell.name}: seeds {seeds[0]} to {seeds[-1]}\n")
                many = len(seeds)
                done = pool.map(_one, [cell.name] * many, seeds, [sizes] * many)
                results.append(asked.results, cell.name, done)
    sys.stdout.write(
        table.text(
            {c.name: list(results.read(asked.results, c.name, c.seeds).values()) for c in found}
        )
    )


if __name__ == "__main__":
    main()
