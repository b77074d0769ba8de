"""One interval's latency counts as an HdrHistogram, with the quantiles reported every second."""

from collections.abc import Iterable

HIGHEST_US = 3_600_000_000  # an hour: longer than any query a trial can hold
DIGITS = 3
_QUANTILES = {50.0: "latency_p50_s", 95.0: "latency_p95_s", 99.0: "latency_p99_s"}

QUANTILE_NAMES = (*_QUANTILES.values(), "latency_max_s")


def recorded(counts: Iterable[tuple[float, int]]) -> tuple[str, dict[str, float]]:
    """Return events counted by microseconds as an HdrHistogram and its quantiles in seconds.

    The histogram is V2 compressed, base64, with three digits from 1 us to an hour (G. Tene,
    2012); values outside are counted at its ends.  Without events: an empty text, no quantiles.
    Raises `ValueError` for a count or a latency below nought.
    """
    from hdrh.histogram import HdrHistogram  # noqa: PLC0415 - few commands run a load

    histogram = HdrHistogram(1, HIGHEST_US, DIGITS)
    for latency_us, count in counts:
        if count < 0 or not latency_us >= 0:
            raise ValueError(f"{count} events of {latency_us} us")
        histogram.record_value(min(max(round(latency_us), 1), HIGHEST_US), count)
    if not histogram.get_total_count():
        return "", {}
    found = histogram.get_percentile_to_value_dict(list(_QUANTILES))
    quantiles = {name: found[percent] / 1e6 for percent, name in _QUANTILES.items()}
    quantiles["latency_max_s"] = histogram.get_max_value() / 1e6
    return histogram.encode().decode(), quantiles
