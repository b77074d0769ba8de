"""Metrics of one trial's measured window, from the intervals that the load reports."""

import sys
from collections.abc import Sequence
from math import isfinite, log

from mydyno.analyse.histograms import merged, percentile_s
from mydyno.model import Interval, Metric, Series, Window, of_kind

_PERCENTILES = {
    "latency_p50_s": 50.0,
    "latency_p95_s": 95.0,
    "latency_p99_s": 99.0,
    "latency_max_s": 100.0,
}
BIN_S = 10.0  # bin width of the analysis: shorter bins are autocorrelated
_SLACK_S = 0.05  # a tool's tenth second ends anywhere between 9.99 and 10.01
_LARGEST = sys.float_info.max
_STALL = 0.01  # a second without work counts as this share of the median, as log 0 has no value


def summarise(intervals: Sequence[Interval], window: Window, response: str) -> list[Metric]:
    """Return the metrics of the window, in base units; empty when it holds no interval.

    Rates are means weighted by time.  Percentiles come from the merged histograms; a tool that
    gives none has its per-interval percentiles summed up by their median, as a series of its own.
    ``<response>_logsd`` is the standard deviation of the log response about its linear trend.
    """
    inside = within(intervals, window)
    if not inside:
        return []
    seconds = _lengths(intervals, inside)
    metrics = _values(inside, seconds)
    metrics |= _percentiles([i.latency for i in inside])
    for kind in dict.fromkeys(kind for i in inside for kind in i.kinds):
        found = _percentiles([i.kinds.get(kind, "") for i in inside])
        metrics |= {of_kind(name, kind): value for name, value in found.items()}
    logsd = _logsd([i.values.get(response, 0.0) for i in inside])
    if logsd is not None:
        metrics[f"{response}_logsd"] = logsd
    return [Metric(name, value, unit_of(name)) for name, value in metrics.items()]


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


def _percentiles(encoded: Sequence[str]) -> dict[str, float]:
    """Return the percentiles of all histograms together; nothing where there are none."""
    histograms = [text for text in encoded if text]
    if not histograms:
        return {}
    total = merged(histograms)
    return {name: percentile_s(total, percent) for name, percent in _PERCENTILES.items()}


def _values(inside: Sequence[Interval], seconds: Sequence[float]) -> dict[str, float]:
    names = dict.fromkeys(name for interval in inside for name in interval.values)
    metrics: dict[str, float] = {}
    for name in names:
        values = [i.values.get(name, 0.0) for i in inside]
        if name.startswith("latency_"):
            present = sorted(i.values[name] for i in inside if name in i.values)
            metrics[name] = present[len(present) // 2]
        else:
            metrics[name] = _weighted(values, seconds)
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
