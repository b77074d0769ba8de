"""Trials as numbers: summaries, how trials end, values of a metric."""

import sys
from bisect import bisect_left
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from math import isfinite, log
from operator import itemgetter
from statistics import fmean, pstdev
from typing import Any

from mydyno.model import (
    Figure,
    Finding,
    Interval,
    Metric,
    Outcome,
    Series,
    TrialStatus,
    Window,
    of_kind,
)
from mydyno.model.values import DIGITS, HIGHEST_US, Level, levels, mean_us, percentile_us
from mydyno.stats.effects import Effect
from mydyno.stats.result import Ends, Estimate
from mydyno.stats.rule import THROUGHPUTS, always_works


def merged(encoded: Iterable[str]) -> Any:  # noqa: ANN401 - hdrh ships no types
    """Return one HdrHistogram (microseconds) of all `encoded` ones; lossless (G. Tene, 2012).

    Raises `ValueError` for what is not a V2 compressed, base64 histogram.
    """
    from hdrh.histogram import HdrHistogram  # noqa: PLC0415 - costs 0.1 s, and few commands need it

    total = HdrHistogram(1, HIGHEST_US, DIGITS)
    for text in encoded:
        try:
            total.decode_and_add(text)
        except Exception as error:  # hdrh raises zlib, base64, struct and its own errors
            raise ValueError(f"not an HdrHistogram (V2, base64): {text[:40]!r}") from error
    return total


def levels_of(encoded: Iterable[str]) -> list[Level]:
    """Return the levels of all histograms together, none where there are none."""
    present = [text for text in encoded if text]
    return levels(merged(present)) if present else []


_SHARES = (0.01, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999)  # that reports show


def cumulative(found: Sequence[Level], points: int = 200) -> list[tuple[float, float]]:
    """Return about `points` pairs of latency in seconds and the share of events up to it.

    Those that are the first to reach a share that reports show are among them.
    """
    seen = list(accumulate(one.events for one in found))
    pairs = [(one.high / 1e6, n / seen[-1]) for one, n in zip(found, seen, strict=True)]
    kept = {*range(0, len(pairs), max(1, len(pairs) // points)), len(pairs) - 1}
    kept |= {bisect_left(pairs, share - 1e-12, key=itemgetter(1)) for share in _SHARES}
    return [pairs[i] for i in sorted(kept)]


_PERCENTILES = {
    "latency_p50_s": 50.0,
    "latency_p95_s": 95.0,
    "latency_p99_s": 99.0,
    "latency_max_s": 100.0,
}
_P99 = "latency_p99_s"
_MEAN, _MAX = "latency_mean_s", "latency_max_s"
_QUERIES = ("reads", "writes", "other")  # what sysbench counts its queries as
BIN_S = 10.0  # bin width of the analysis: shorter bins are autocorrelated
_SLACK_S = 0.05  # a tool's tenth second ends anywhere between 9.99 and 10.01
_LARGEST = sys.float_info.max
_FEW = 10  # latencies that are too few for a spread
_STALL = 0.01  # a second without work counts as this share of the median, as log 0 has no value


def summarise(intervals: Sequence[Interval], window: Window, response: str) -> list[Metric]:
    """Return the metrics of the window, in base units; empty when it holds no interval.

    Rates are means weighted by time; ``qps`` is the sum of all kinds.  Percentiles come from the
    merged histograms; a tool that gives none has its per-interval percentiles summed up by their
    median, as a series of its own, its maxima by the greatest, and its means by their mean weighted
    by time.  Of threads that always wait for one request each the mean latency is their number over
    the requests a second (Little's law).
    ``<response>_logsd`` is the standard deviation of the log response about its linear trend,
    ``latency_p99_logsd`` that of the 99th percentile of each interval.  ``latency_logsd`` is the
    standard deviation of the log latency of all requests, ``unfairness_ratio`` that of the threads'
    transactions, relative to their mean.
    """
    inside = within(intervals, window)
    if not inside:
        return []
    seconds = _lengths(intervals, inside)
    metrics = _values(inside, seconds)
    if metrics.keys() >= set(_QUERIES) and "qps" not in metrics:
        metrics["qps"] = sum(metrics[name] for name in _QUERIES)
    if all(i.threads for i in inside) and (done := metrics["iops"] + metrics["fsyncs"]):
        metrics[_MEAN] = _weighted([i.threads for i in inside], seconds) / done
    every = levels_of(i.latency for i in inside)
    metrics |= _percentiles(every) | _spread(every)
    for kind in dict.fromkeys(kind for i in inside for kind in i.kinds):
        found = _percentiles(levels_of(i.kinds.get(kind, "") for i in inside))
        metrics |= {of_kind(name, kind): value for name, value in found.items()}
    logsd = _logsd([i.values.get(response, 0.0) for i in inside])
    if logsd is not None:
        metrics[f"{response}_logsd"] = logsd
    slow = [i.values[_P99] for i in inside if _P99 in i.values]
    if len(slow) == len(inside) and (logsd := _logsd(slow)) is not None:
        metrics["latency_p99_logsd"] = logsd
    if (unfair := _unfairness([i.by_thread for i in inside])) is not None:
        metrics["unfairness_ratio"] = unfair
    return [Metric(name, value, unit_of(name)) for name, value in metrics.items()]


def _unfairness(counts: Sequence[Sequence[int]]) -> float | None:
    """Return the relative standard deviation of the threads' transactions, None for one thread."""
    if len({len(each) for each in counts}) != 1 or len(counts[0]) < 2:  # noqa: PLR2004
        return None
    totals = [sum(of_thread) for of_thread in zip(*counts, strict=True)]
    return pstdev(totals) / fmean(totals) if any(totals) else None


def tens(intervals: Sequence[Interval], response: str) -> Series:
    """Return the response in each complete bin of `BIN_S` since the load began.

    A rate holds since the report before it and is weighted by time; of a latency it is what
    `summarise` makes of the reports that ended in the bin.
    """
    last_s = intervals[-1].t_s if intervals else 0.0
    bins = int((last_s + _SLACK_S) // BIN_S)
    ends = tuple(BIN_S * (i + 1) for i in range(bins))
    rated = not response.startswith("latency_")
    values = _rates(intervals, response, bins) if rated else _latencies(intervals, response, ends)
    return Series(response, unit_of(response), ends[: len(values)], tuple(values))


def _rates(intervals: Sequence[Interval], response: str, bins: int) -> list[float]:
    work = [0.0] * bins
    before_s = 0.0
    for interval in intervals:
        value, at_s = interval.values.get(response, 0.0), before_s
        while at_s < interval.t_s and int(at_s // BIN_S) < bins:
            place = int(at_s // BIN_S)
            end_s = min(interval.t_s, BIN_S * (place + 1))
            work[place] += value * ((end_s - at_s) / BIN_S)
            at_s = end_s
        before_s = interval.t_s
    return [min(max(one, -_LARGEST), _LARGEST) for one in work]


def _latencies(intervals: Sequence[Interval], response: str, ends: Sequence[float]) -> list[float]:
    found: list[float] = []
    for end_s in ends:
        metrics = summarise(intervals, Window(end_s - BIN_S, end_s), response)
        value = next((m.value for m in metrics if m.name == response), 0.0)
        found.append(
            value or (found[-1] if found else 0.0)
        )  # no report ended in it: the value before
    return found


def within(intervals: Sequence[Interval], window: Window) -> list[Interval]:
    """Return the intervals that ended in ``start_s < t <= end_s``."""
    return [i for i in intervals if window.holds(i.t_s)]


def unit_of(name: str) -> str:
    """Return the base unit a metric's name carries."""
    if name.endswith("_s"):
        return "s"
    if name.startswith("storage_"):
        return "B"
    if name.endswith(("_ratio", "_logsd")):
        return "ratio"
    return "B/s" if name.endswith("bytes") else "/s"


def _percentiles(found: Sequence[Level]) -> dict[str, float]:
    each = {name: percentile_us(found, percent) / 1e6 for name, percent in _PERCENTILES.items()}
    return {_MEAN: mean_us(found) / 1e6, **each} if found else {}


def _spread(found: Sequence[Level]) -> dict[str, float]:
    weighted = [(log(max(one.high, 1)), one.events) for one in found]
    count = sum(n for _, n in weighted)
    if count < _FEW:
        return {}
    mean = sum(value * n for value, n in weighted) / count
    squares = sum(n * (value - mean) ** 2 for value, n in weighted)
    return {"latency_logsd": float((squares / (count - 1)) ** 0.5)}


def _values(inside: Sequence[Interval], seconds: Sequence[float]) -> dict[str, float]:
    names = dict.fromkeys(name for interval in inside for name in interval.values)
    metrics: dict[str, float] = {}
    timed = list(zip(inside, seconds, strict=True))
    for name in names:
        if name.startswith("latency_"):
            there = sorted((i.values[name], s) for i, s in timed if name in i.values)
            ranked = there[-1 if name == _MAX else len(there) // 2][0]
            metrics[name] = _weighted(*zip(*there, strict=True)) if name == _MEAN else ranked
        else:
            metrics[name] = _weighted([i.values.get(name, 0.0) for i in inside], seconds)
    return metrics


def _weighted(values: Sequence[float], seconds: Sequence[float]) -> float:
    """Return the mean of finite values weighted by time, without overflow of their sum."""
    total = sum(seconds)
    mean = sum(v * s for v, s in zip(values, seconds, strict=True)) / total
    if isfinite(mean):
        return mean
    shares = sum(v * (s / total) for v, s in zip(values, seconds, strict=True))
    return min(max(shares, -_LARGEST), _LARGEST)


def _lengths(intervals: Sequence[Interval], inside: Sequence[Interval]) -> list[float]:
    """Return each inner interval's length in seconds: from the end of the one before it."""
    ends = [i.t_s for i in intervals]
    first = ends.index(inside[0].t_s)
    before = [ends[first - 1] if first else 0.0, *(i.t_s for i in inside[:-1])]
    return [i.t_s - b for i, b in zip(inside, before, strict=True)]


def _logsd(values: Sequence[float]) -> float | None:
    """Return the sd of log values about a straight line; None for fewer than four values."""
    enough = 4
    positive = sorted(v for v in values if v > 0)
    if len(values) < enough or not positive:
        return None
    floor = positive[len(positive) // 2] * _STALL or positive[0]
    logs = [log(max(v, floor)) for v in values]
    n = len(logs)
    x_mean, y_mean = (n - 1) / 2, sum(logs) / n
    slope = sum((x - x_mean) * (y - y_mean) for x, y in enumerate(logs)) / (n * (n * n - 1) / 12)
    squares = sum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in enumerate(logs))
    return float((squares / (n - 2)) ** 0.5)


@dataclass(frozen=True, slots=True)
class Estimates:
    """Effects by treatment, of the response and of each guard by metric; all by log ratio.

    `values` holds each treatment's log responses, one for each trial; `spreads` the residuals of
    its trials, as logs; `unsteady` the treatments without a
    steady state, `wavering` those for which that is not ruled out yet.  `carries` is true if the
    previous treatment carries over into the measured segments.
    """

    effects: Mapping[str, Effect] = field(default_factory=dict)
    guards: Mapping[str, Mapping[str, Effect]] = field(default_factory=dict)
    values: Mapping[str, Sequence[float]] = field(default_factory=dict)
    spreads: Mapping[str, Sequence[float]] = field(default_factory=dict)
    unsteady: Collection[str] = ()
    wavering: Collection[str] = ()
    carries: bool = False


def log_of(outcome: Outcome, metric: str) -> float | None:
    """Return the log of a metric of a good trial, None if it has none.

    Zero has no log; it is counted separately, for responses in `mydyno.stats.estimates` and for
    guards in `mydyno.stats.decide`.
    """
    value = metric_of(outcome, metric)
    if outcome.status is not TrialStatus.OK or value is None or not isfinite(value):
        return None
    return log(value) if value > 0 else None


def metric_of(outcome: Outcome, metric: str) -> float | None:
    """Return the value of a metric, None where the trial has none."""
    return next((m.value for m in outcome.metrics if m.name == metric), None)


def good_values(outcomes: Sequence[Outcome], metric: str) -> list[float]:
    """Return the finite values of a metric of the good trials."""
    good = [o for o in outcomes if o.status is TrialStatus.OK]
    return [v for o in good if (v := metric_of(o, metric)) is not None and isfinite(v)]


def ended(
    outcomes: Sequence[Outcome], responses: Mapping[str, str], lower: Collection[str] = ()
) -> list[Outcome]:
    """Return the outcomes, with status STALLED for those whose load did no work in its window.

    `responses` are by workload; `lower` names the metrics that the spec declares better if lower.
    Trials without a finite value of the response are UNKNOWN.  A response that may be 0 in a good
    trial, such as `errors`, is not changed.
    """
    return [_ended(o, responses.get(o.trial.workload), lower) for o in outcomes]


def _ended(outcome: Outcome, response: str | None, lower: Collection[str]) -> Outcome:
    if outcome.status is not TrialStatus.OK or response is None:
        return outcome
    value = metric_of(outcome, response)
    if value is None or not isfinite(value):
        figures: dict[str, Figure] = {"metric": response}
        if value is not None:
            figures["value"] = f"{value:g}"  # nan and inf have no JSON
        code = "no-value" if value is None else "not-finite"
        return replace(outcome, status=TrialStatus.UNKNOWN, finding=Finding(code, figures))
    for name in dict.fromkeys((response, *THROUGHPUTS)):
        work = metric_of(outcome, name)
        if work is not None and work <= 0 and always_works(name, lower):
            finding = Finding("no-work", {"metric": name, "value": work})
            return replace(outcome, status=TrialStatus.STALLED, finding=finding)
    return outcome


def ends_of(outcomes: Sequence[Outcome]) -> Ends:
    """Return how trials ended; void (invalid) trials are not counted."""
    counts = {status: sum(o.status is status for o in outcomes) for status in TrialStatus}
    return Ends(
        trials=len(outcomes) - counts[TrialStatus.VOID],
        failed=counts[TrialStatus.FAILED],
        stalled=counts[TrialStatus.STALLED],
        unknown=counts[TrialStatus.UNKNOWN],
    )


def zeros(outcomes: Sequence[Outcome], response: str) -> int:
    """Return the number of good trials whose response is 0, so that there is no ratio.

    For most responses this is 0: such trials have stalled (`ended`).
    """
    return sum(v <= 0 for v in good_values(outcomes, response))


def share_lost(ends: Ends) -> float:
    """Return the share of trials that were not measured, 0 without trials."""
    return ends.lost / ends.trials if ends.trials else 0.0


RESPONSES = (
    *("tps", "qps", "iops", "reads", "writes", "read_bytes", "write_bytes", "errors"),
    *("latency_mean_s", "latency_p50_s", "latency_p95_s", "latency_p99_s", "latency_max_s"),
    *("unfairness_ratio", "replica_speed_ratio", "replica_lag_s"),
)
PLAIN = (
    *("storage_bytes", "storage_apparent_bytes", "compression_ratio", "prepare_s"),
    *RESPONSES,
)


def plain(outcomes: Sequence[Outcome]) -> dict[str, Estimate]:
    """Return the means of these metrics over the good trials, without metrics that none has."""
    found = {name: mean(outcomes, name) for name in PLAIN}
    return {n: Estimate(v, unit_of(n)) for n, v in found.items() if v is not None}


def mean(outcomes: Sequence[Outcome], metric: str) -> float | None:
    """Return a metric's mean over the good trials, None if none of them has it."""
    values = good_values(outcomes, metric)
    try:
        return fmean(values) if values else None
    except OverflowError:  # no float holds their sum
        return sum(v / len(values) for v in values)
