"""Latency histograms: merged, never averaged."""

from collections.abc import Iterable
from typing import Any

HIGHEST_US = 3_600_000_000  # an hour: longer than any query a trial can hold
DIGITS = 3


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


def percentile_s(histogram: Any, percent: float) -> float:  # noqa: ANN401 - as above
    """Return the latency in seconds that `percent` of the events did not exceed."""
    return float(histogram.get_value_at_percentile(percent)) / 1e6


def cumulative(histogram: Any, points: int = 200) -> list[tuple[float, float]]:  # noqa: ANN401
    """Return at most `points` pairs of latency in seconds and the share of events up to it."""
    total = histogram.get_total_count()
    pairs: list[tuple[float, float]] = []
    seen = 0
    for item in histogram.get_recorded_iterator():
        seen += item.count_at_value_iterated_to
        pairs.append((item.value_iterated_to / 1e6, seen / total))
    step = max(1, len(pairs) // points)
    return pairs[::step] + (pairs[-1:] if len(pairs) % step != 1 else [])
