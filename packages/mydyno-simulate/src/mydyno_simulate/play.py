"""Complete campaigns on a simulated host, in process: a test bed for designs and stop rules."""

import numpy as np

from mydyno.campaign.designs import Design, Enough, Fixed, Stop, Stops
from mydyno.model import Interval, Metric, Outcome, Series, Trial, TrialStatus, Window
from mydyno.stats import BIN_S, unit_of
from mydyno_simulate import noise
from mydyno_simulate.machine import Machine, SimulatedLoad
from mydyno_simulate.noise import Logs

_BIN = int(BIN_S)
RESPONSE = "tps"


def play(design: Design, stops: Stops, machine: Machine, *, tails: bool = False) -> list[Outcome]:
    """Return the outcomes of a campaign, run until the design ends it.

    Each has the metric ``tps`` and its series; with `tails` also ``latency_p99_s`` of its window.
    """
    history: list[Outcome] = []
    while (trial := design.next(history)) is not None:
        history.append(one(machine, trial, stops.of(trial, history), tails=tails))
    return history


def one(machine: Machine, trial: Trial, stop: Stop, *, tails: bool = False) -> Outcome:
    """Run one trial until its rule has its window."""
    load = machine.begin(trial)
    window = _window(load, stop)
    seconds = round(window.end_s)
    logs = load.upto(seconds)
    spent_s = machine.end(load, seconds)
    inside = logs[round(window.start_s) :]
    mean = float(np.exp(inside).mean()) * noise.RATE
    metrics = [Metric(RESPONSE, mean, unit_of(RESPONSE))]
    if tails:
        p99_s = noise.quantile(inside, load.arm.tail, 0.99)
        metrics.append(Metric("latency_p99_s", p99_s, "s"))
    return Outcome(trial, TrialStatus.OK, window, metrics, (_series(logs),), spent_s)


def _window(load: SimulatedLoad, stop: Stop) -> Window:
    if isinstance(stop, Fixed):
        return Window(stop.warmup_s, stop.warmup_s + stop.window_s)
    if not isinstance(stop, Enough):
        return _second_by_second(load, stop)
    for look_s in stop.lengths.looks_s:
        if window := stop.lengths.window(_series(load.upto(int(look_s)))):
            return window
    raise RuntimeError("the last look always ends a trial")


def _second_by_second(load: SimulatedLoad, stop: Stop) -> Window:
    """Return the window of any rule, shown each second as a load would report it."""
    intervals: list[Interval] = []
    while True:
        log = float(load.upto(len(intervals) + 1)[-1])
        values = {RESPONSE: noise.RATE * float(np.exp(log))}
        intervals.append(Interval(len(intervals) + 1.0, values))
        if window := stop.done(intervals):
            return window


def _series(logs: Logs) -> Series:
    """Return what `mydyno.stats.tens` makes of one report a second."""
    bins = len(logs) // _BIN
    rates = np.exp(logs[: bins * _BIN]).reshape(bins, _BIN).mean(axis=1) * noise.RATE
    ends = tuple(BIN_S * (i + 1) for i in range(bins))
    return Series(RESPONSE, unit_of(RESPONSE), ends, tuple(map(float, rates)))
