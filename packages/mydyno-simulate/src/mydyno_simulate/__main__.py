"""The simulated host as a load: ``tool = "command"``, any spec, no server.

``python -m mydyno_simulate --world cloud --seed 7`` runs the arm that the treatment's
``load/env`` describes: ``SIM_EFFECT`` (a ratio less one), ``SIM_WARMUP`` (``kind:amplitude:tau``),
``SIM_TAIL`` and ``SIM_RUN_FACTOR``.  Time is that of the campaign, never of the clock.
"""

import argparse
import json
import math
import os
import sys
from collections.abc import Iterator, Mapping

import numpy as np

from mydyno.loads.histogram import recorded
from mydyno.model import Trial
from mydyno_simulate import noise
from mydyno_simulate.arms import Arm
from mydyno_simulate.machine import WORLDS, Machine
from mydyno_simulate.warmups import KINDS, Warmup

_MOST_S = 100_000


def arm_of(environment: Mapping[str, str]) -> Arm:
    """Return the arm that a treatment's environment describes; raise `ValueError` for nonsense."""
    shape = environment.get("SIM_WARMUP", "exponential:0.4:45")
    kind, amplitude, tau_s = (*shape.split(":"), "", "")[:3]
    if kind not in KINDS or not tau_s:
        raise ValueError(f"SIM_WARMUP: {shape!r}: write kind:amplitude:tau of {', '.join(KINDS)}")
    return Arm(
        effect=math.log1p(float(environment.get("SIM_EFFECT", "0"))),
        warmup=Warmup(kind, float(amplitude), float(tau_s)),
        tail=float(environment.get("SIM_TAIL", "0")),
        run_factor=float(environment.get("SIM_RUN_FACTOR", "1")),
    )


def report(machine: Machine, trial: Trial, *, histograms: bool) -> Iterator[dict[str, object]]:
    """Yield the reports of a load for one trial: its overhead, then a second after the other."""
    load = machine.begin(trial)
    chance = np.random.default_rng((machine.seed, 8, trial.id))
    yield {"event": "overhead", "cost_s": load.idle_s}
    for second in range(_MOST_S):
        log = float(load.upto(second + 1)[second])
        tail = load.arm.tail
        line: dict[str, object] = {
            "t_s": second + 1,
            "tps": noise.RATE * math.exp(log),
            "latency_p99_s": noise.quantile(np.array([log]), tail, 0.99),
        }
        if histograms:
            values, counts = noise.sample(log, tail, chance)
            line["latency_hist"], _ = recorded(zip(values * 1e6, counts, strict=True))
        yield line


def main() -> None:
    """Print one trial, a JSON object a line, until nobody reads on."""
    parser = argparse.ArgumentParser(prog="mydyno_simulate", description=__doc__)
    parser.add_argument("--world", choices=WORLDS, default="cloud")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--histograms", action="store_true", help="latency histograms too")
    asked = parser.parse_args()
    environment = os.environ
    try:
        arm = arm_of(environment)
    except ValueError as error:
        parser.error(str(error))
    machine = Machine(WORLDS[asked.world], {"a": arm}, asked.seed)
    machine.clock_s = float(environment.get("MYDYNO_ELAPSED_S", "0"))
    trial = Trial(int(environment.get("MYDYNO_TRIAL", "0")), "a", "w", 0, asked.seed)
    try:
        for line in report(machine, trial, histograms=asked.histograms):
            print(json.dumps(line), flush=True)  # noqa: T201 - its output is the load's
    except BrokenPipeError:
        sys.stderr.close()  # who listened has heard enough


if __name__ == "__main__":
    main()
