"""Diagnoses of simulated closed networks whose elasticities are known: `make bench-diagnose`.

Each case is a random network of stations: those that a dose can slow (a disk's rate, the latency of
its reads and flushes, a link, the host's CPUs) and some that none can (locks, think time).  The
design that `mydyno diagnose` runs chooses doses by the account, runs segments with noise, and
stops; its answer is compared with the true elasticities.
"""

import argparse
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from pathlib import Path
from statistics import fmean, median
from typing import Any

from decisions_table import share
from mydyno.campaign.doses import (
    BUDGET_S,
    EXPECTED,
    OWN,
    SEGMENT_S,
    SETTLED_S,
    STALLED,
    STEADY,
    STRENGTHS,
    WASHOUT_S,
    Doses,
    factor,
    limit_of,
    proven,
)
from mydyno.diagnose import network
from mydyno.diagnose.account import CPU, LATCH, LOG, NETWORK, READ, THINK
from mydyno.diagnose.diagnosis import ALL, Proof, main_limit
from mydyno.diagnose.elasticity import outside, stall_below
from mydyno.diagnose.network import Station, elasticities, fitted
from mydyno.model import Metric, Outcome, Trial, TrialStatus, Window

DOSED = {  # the station that a dose slows
    "disk.rate": READ,
    "disk.flush_latency": LOG,
    "link.rate": NETWORK,
    "slow.host": CPU,
}
DOSES = [
    f"{limit} {value}"
    for slower, faster in STRENGTHS
    for limit, value in (
        ("disk.rate", slower),
        ("disk.flush_latency", faster),
        ("link.rate", slower),
        ("slow.host", slower),
        ("disk.rate", faster),
        ("link.rate", faster),
        (ALL, slower),
    )
]
QUEUED = (READ, NETWORK, CPU)
HIDDEN = (LATCH, THINK)
WORLDS = {
    "1.5 %": (0.015, 0.0),
    "3 %": (0.03, 0.0),
    "6 %": (0.06, 0.0),
    "10 %": (0.1, 0.0),
    "3 %, stalls": (0.03, 0.04),
}
"""The noise of a segment (logs), and the chance of a second that a stall begins in it."""
_STALL_S = 2  # all but nothing is done in them
_SECOND = 0.3  # true elasticity of another limit that is to be named
_SWITCH_S = 1.0
_FLUSH_S = 0.003  # as the first trial measures it, so that there is a dose of it


@dataclass(frozen=True, slots=True)
class Case:
    """A network with `n` connections; segments have this noise (logs), and stalls so often."""

    stations: tuple[Station, ...]
    n: int
    world: str
    seed: int

    def throughput(self, dose: str) -> float:
        """Return the true throughput under a dose, `""` for none."""
        return network.of(self._under(dose), self.n).throughput

    def elasticity(self, limit: str) -> float:
        """Return the true local elasticity of what a dose slows."""
        return elasticities(self.stations, self.n)[DOSED[limit]]

    def _under(self, dose: str) -> list[Station]:
        limit = limit_of(dose)
        slowed = {*DOSED.values()} if limit == ALL else {DOSED[limit]} if dose else set()
        speed = factor(dose) if dose else 1.0
        return [
            Station(s.name, s.demand_s / (speed if s.name in slowed else 1.0), s.queues)
            for s in self.stations
        ]


def case(seed: int, world: str) -> Case:
    """Return a random network: demands over three decades, 1 to 64 connections."""
    chance = random.Random(seed)
    names = (*QUEUED, LOG, *HIDDEN)
    stations = tuple(
        Station(name, 10 ** chance.uniform(-4.5, -2), name in QUEUED) for name in names
    )
    return Case(stations, chance.choice((1, 2, 4, 8, 16, 32, 64)), world, seed)


def outcome(of: Case, trial: Trial, chance: random.Random) -> Outcome:
    """Return a trial of the simulated load, the first one with what its account suggests."""
    dose = "" if trial.treatment == "BASE" else trial.treatment
    noise, stalls = WORLDS[of.world]
    value = of.throughput(dose) * exp(chance.gauss(0.0, noise))
    metrics = [Metric("tps", value, "/s")]
    if stalls and trial.id:
        metrics = stalling(value, stalls, chance)
    if not trial.id:
        lengths = network.of(of.stations, of.n).lengths.tolist()
        found = zip(of.stations, lengths, strict=True)
        seen = {s.name: max(0.0, x + chance.gauss(0, 0.01 * of.n)) for s, x in found}
        worth = elasticities(fitted(seen, frozenset(QUEUED), of.n), of.n)
        metrics += [
            Metric(f"{EXPECTED}{name}", worth.get(station, 0.0), "ratio")
            for name, station in DOSED.items()
        ]
        metrics.append(Metric(f"{OWN}flush_latency", _FLUSH_S, "s"))
    spent_s = SETTLED_S[0] + 5.0 if not trial.id else SEGMENT_S + _SWITCH_S
    return Outcome(
        trial, TrialStatus.OK, Window(0.0, SEGMENT_S), tuple(metrics), machine_time_s=spent_s
    )


def stalling(value: float, often: float, chance: random.Random) -> list[Metric]:
    """Return the metrics of a segment whose load stands still now and then."""
    left, rates = 0, list[float]()
    for _ in range(round(SEGMENT_S)):
        left = _STALL_S if not left and chance.random() < often else left
        rates.append(0.0 if left else value)
        left = max(0, left - 1)
    skip = round(WASHOUT_S)
    steady, share_of = outside(rates, stall_below([value] * 20), skip)
    found = [Metric("tps", fmean(rates[skip:]), "/s"), Metric(STALLED, share_of, "ratio")]
    return found if steady is None else [*found, Metric(STEADY, steady, "/s")]


def diagnosed(of: Case) -> dict[str, Any]:
    """Return the answer to one case and the truth."""
    design = Doses("BASE", "w", tuple(DOSES), "tps", BUDGET_S, of.seed)
    chance, history = random.Random(f"{of.seed}/{WORLDS[of.world][0]}"), list[Outcome]()
    while trial := design.next(history):
        history.append(outcome(of, trial, chance))
    worse = proven(history, "BASE", "tps", BUDGET_S).worse
    limit = main_limit(worse)
    truth = {name: of.elasticity(name) for name in DOSED}
    best = max(truth, key=lambda name: truth[name])
    answer = limit.limit if limit else ""
    given = {o.trial.treatment for o in history}
    inside = [_inside(of, p, given) for p in worse]
    together = next((p for p in worse if p.limit == ALL), None)
    return {
        "world": of.world,
        "n": of.n,
        "answer": answer,
        "best": best,
        "true_e": truth.get(answer, 0.0),
        "best_e": truth[best],
        "right": bool(answer) and (answer == best or truth[answer] > truth[best] - 0.1),
        "inside": sum(inside),
        "intervals": len(inside),
        "held": all(inside),
        "explained": None if together is None else _inside(of, together, given),
        "seconds": sum(o.machine_time_s for o in history),
        "proofs": len(worse),
        "large": [name for name, e in truth.items() if e >= _SECOND],
        "named": [p.limit for p in worse if p.verdict in {"the_limit", "a_limit"}],
    }


def _inside(of: Case, proof: Proof, given: set[str]) -> bool:
    """Return whether an interval has the elasticity over the steps of the doses that were given."""
    steps = [d for d in given if d != "BASE" and limit_of(d) == proof.limit and factor(d) < 1]
    plain = of.throughput("")
    true = [log(of.throughput(dose) / plain) / log(factor(dose)) for dose in steps]
    return proof.low <= max(true) and min(true) <= proof.high


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures of all cases as Markdown."""
    head = (
        "| noise | cases | proven, a limit ≥ 0.6 exists | wrong of proven | right of proven | "
        "unknown where no limit > 0.5 | intervals hold | all hold | explained holds | "
        "of several ≥ 0.3 all are named | median s |"
    )
    lines = [head, "|" + "---|" * 11]
    for world in WORLDS:
        mine = [r for r in rows if r["world"] == world]
        clear = [r for r in mine if r["best_e"] >= 0.6]
        none = [r for r in mine if r["best_e"] < 0.4]
        answered = [r for r in mine if r["answer"]]
        wrong = [r for r in answered if not r["right"]]
        several = [r for r in mine if len(r["large"]) > 1]
        explained = [r for r in mine if r["explained"] is not None]
        lines.append(
            f"| {world} | {len(mine)} | "
            f"{share(sum(bool(r['answer']) for r in clear), len(clear))} | "
            f"{share(len(wrong), len(answered))} | "
            f"{share(len(answered) - len(wrong), len(answered))} | "
            f"{share(sum(not r['answer'] for r in none), len(none))} | "
            f"{share(sum(r['inside'] for r in mine), sum(r['intervals'] for r in mine))} | "
            f"{share(sum(bool(r['held']) for r in mine), len(mine))} | "
            f"{share(sum(bool(r['explained']) for r in explained), len(explained))} | "
            f"{share(sum({*r['large']} <= {*r['named']} for r in several), len(several))} | "
            f"{median(r['seconds'] for r in answered) if answered else 0:.0f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Run the simulated cases and print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--seeds", type=int, default=600)
    asked.add_argument("--first", type=int, default=1)
    asked.add_argument("-o", "--output", type=Path)
    given = asked.parse_args()
    rows = [
        diagnosed(case(seed, world))
        for world in WORLDS
        for seed in range(given.first, given.first + given.seeds)
    ]
    if given.output:
        given.output.write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    print(table(rows))
    print(Counter(str(r["answer"] or "unknown") for r in rows))


if __name__ == "__main__":
    main()
