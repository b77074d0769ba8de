"""Whether sampling slows the work: throughput with and without it, in turns, while a load runs."""

import math
import random
import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median

from scipy import stats

from probe_process import Fault, refuse_dead, sleep_until, started, tree_cpu_ns
from probe_server import Load
from probe_tools import Setup, Tool

LEAD_S, TAIL_S = 2.0, 0.5  # of each block, for what the turn itself disturbs
WARMUP_S = 20.0
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Plan:
    """How long in all, how long each turn, and what draws the turns."""

    minutes: float
    block_s: float
    seed: int


@dataclass(frozen=True, slots=True)
class Effect:
    """The ratio of throughput with the sampler to without it, with its interval.

    `cost` is the CPU that the sampler takes beside this load, in cores: the median of its blocks.
    """

    ratio: float
    low: float
    high: float
    pairs: int
    spread: float
    tps: float
    cost: float = 0.0


def turns(quads: int, seed: int) -> list[bool]:
    """Return in which blocks the sampler runs: on-off-off-on or its reverse, drawn at random.

    Within such four a steady drift of the machine falls on both alike.
    """
    draw = random.Random(seed)
    blocks: list[bool] = []
    for _ in range(quads):
        first = draw.random() < 0.5
        blocks += [first, not first, not first, first]
    return blocks


def measure(tool: Tool, setup: Setup, load: Load, folder: Path, plan: Plan) -> Effect:
    """Return the effect of a sampler on a running load."""
    blocks = turns(max(1, round(plan.minutes * 60 / plan.block_s / 4)), plan.seed)
    time.sleep(WARMUP_S)
    passed = [
        _block(tool if on else None, setup, folder / f"block{number}", plan.block_s)
        for number, on in enumerate(blocks)
    ]
    time.sleep(1.0)  # until the last second's line is there
    rates = [_rate(load, *span) for span, _ in passed]
    costs = [cost for on, (_, cost) in zip(blocks, passed, strict=True) if on]
    return replace(ratio(blocks, rates), cost=median(costs))


def ratio(blocks: list[bool], rates: list[float]) -> Effect:
    """Return the mean ratio of neighbours, on to off, with a t interval over their logarithms."""
    logs = []
    for k in range(0, len(blocks), 2):
        on, off = (rates[k], rates[k + 1]) if blocks[k] else (rates[k + 1], rates[k])
        logs.append(math.log(on / off))
    deviation = stats.tstd(logs)
    half = stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1) * deviation / math.sqrt(len(logs))
    middle = fmean(logs)
    low, high = math.exp(middle - half), math.exp(middle + half)
    return Effect(math.exp(middle), low, high, len(logs), deviation, fmean(rates))


def _block(
    tool: Tool | None, setup: Setup, file: Path, block_s: float
) -> tuple[tuple[float, float], float]:
    """Let a block pass, sampled if there is a tool; return when it counts, and the tool's cores."""
    begin = time.monotonic()
    log, cost = file.with_suffix(".log"), 0.0
    with ExitStack() as stack:
        if tool:
            process = stack.enter_context(started(tool.argv(setup, file), log))
            sleep_until(begin + LEAD_S)
            before_s, before_ns = time.monotonic(), tree_cpu_ns(process.pid)
        sleep_until(begin + block_s - TAIL_S / 2)
        if tool:
            refuse_dead(process, tool.name, log)
            took_ns, took_s = tree_cpu_ns(process.pid) - before_ns, time.monotonic() - before_s
            cost = took_ns / 1e9 / took_s
    sleep_until(begin + block_s)
    return (begin + LEAD_S, begin + block_s - TAIL_S), cost


def _rate(load: Load, begin: float, end: float) -> float:
    seconds = load.between(begin, end)
    if not seconds or not all(seconds):
        raise Fault("the load stopped or reported nothing in a block")
    return fmean(seconds)
