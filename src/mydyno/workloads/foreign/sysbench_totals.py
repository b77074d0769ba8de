"""The sum of one sysbench run, recomputed from its counts and its seconds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mydyno.model import Interval

Summary = Mapping[str, tuple[tuple[str, ...], int]]

_MIB = 2**20
_IN_S = {"": 1e-3, "ms": 1e-3, "s": 1.0}  # 1.0 and later say ms in a heading
_COUNTS = {"q_read": "reads", "q_write": "writes", "q_other": "other", "q_total": "qps",
           "errors": "errors", "reconnects": "reconnects", "transactions": "tps"}  # fmt: skip
_FILES = ("performed", "executed", "reads", "writes", "iops_read", "iops_write")


@dataclass(frozen=True, slots=True)
class Totals:
    """An entire run: `values` in base units, `seconds` long; `events` and `mix` as counted.

    `implied` is True if no line contains the seconds; they are computed from the printed rates;
    `mix` are the queries of one transaction: read, write, other.
    """

    response: str
    values: Mapping[str, float]
    seconds: float
    events: int
    mix: tuple[int, int, int] | None = None
    implied: bool = False

    @property
    def rates(self) -> dict[str, float]:
        """Return what one interval of all the run would report."""
        return {name: value for name, value in self.values.items() if name != "seconds"}


def totals_of(summary: Summary, intervals: Sequence[Interval], block_bytes: int) -> Totals:
    """Return the sums of a run; raise `ValueError` where nothing can be computed."""
    if is_cut(summary):
        return _of_intervals(intervals, block_bytes)
    seconds, implied = seconds_of(summary)
    events = int(_first(summary, "events") or _first(summary, "transactions") or 0)
    files = any(key in summary for key in _FILES)
    values = _files(summary, seconds, events, block_bytes) if files else _statements(
        summary, seconds, events)  # fmt: skip
    values |= {"seconds": seconds, **_latencies(summary, events)}
    response = next(name for name in ("iops", "tps", "eps") if name in values)
    return Totals(response, values, seconds, events, _mix(summary), implied)


def is_cut(summary: Summary) -> bool:
    """Return whether a run has no closing report, or not enough of it."""
    return not any(key in summary for key in ("events", "transactions", *_FILES))


def seconds_of(summary: Summary) -> tuple[float, bool]:
    """Return how long a run was in seconds, and whether it was computed from rates."""
    if seconds := _first(summary, "seconds"):
        return seconds, False
    for key in ("queries", "requests", "transactions"):
        texts, _ = summary.get(key, ((), 0))
        if texts and float(texts[0]) and float(texts[1]):
            return float(texts[0]) / float(texts[1]), True
    raise ValueError("a result without seconds: neither a total time nor a rate is there")


def _of_intervals(intervals: Sequence[Interval], block_bytes: int) -> Totals:
    """Return the sums of a run that was cut off before its own."""
    if not intervals or not intervals[-1].t_s:
        raise ValueError("a result without counts and without reports")
    sums: dict[str, float] = {}
    before_s = 0.0
    for interval in intervals:
        for name, value in interval.values.items():
            if not name.startswith("latency_"):
                sums[name] = sums.get(name, 0.0) + value * (interval.t_s - before_s)
        before_s = interval.t_s
    values = {name: total / before_s for name, total in sums.items()}
    if "read_bytes" in values:
        values["iops"] = (values["read_bytes"] + values.get("write_bytes", 0.0)) / block_bytes
    response = next((name for name in ("iops", "tps", "eps") if name in values), None)
    if response is None:
        raise ValueError("reports without transactions or requests")
    return Totals(response, values | {"seconds": before_s}, before_s, 0, _mix_of(values))


def _statements(summary: Summary, seconds: float, events: int) -> dict[str, float]:
    found = {
        name: float(summary[key][0][0]) / seconds for key, name in _COUNTS.items() if key in summary
    }
    if "tps" not in found:
        found["eps"] = events / seconds
    return found


def _files(summary: Summary, seconds: float, events: int, block_bytes: int) -> dict[str, float]:
    """Return the requests of the file test per second, from counts.

    Since 1.0 only all events are counted, fsyncs that come now and then among them; the shares of
    reads, writes and fsyncs are those of the printed rates, whose clock goes on to the last fsync.
    """
    if "performed" in summary:
        reads, writes, other = (float(text) / seconds for text in summary["performed"][0][:3])
    else:
        names = (("reads", "iops_read"), ("writes", "iops_write"), ("fsyncs", "iops_fsync"))
        rates = [_first(summary, *keys) for keys in names]
        reads, writes, other = _shared(rates, events / seconds)
    if not reads + writes:
        raise ValueError("a result of the file test without its requests")
    return {
        "iops": reads + writes,
        "reads": reads,
        "writes": writes,
        "fsyncs": other,
        "read_bytes": reads * block_bytes,
        "write_bytes": writes * block_bytes,
    }


def _shared(rates: Sequence[float], all_rate: float) -> tuple[float, float, float]:
    """Return the rate of all events shared out as the printed rates are."""
    reads, writes, other = rates
    asked = reads + writes
    if not asked or not all_rate:
        return reads, writes, other
    among = abs(asked + other - all_rate) < abs(asked - all_rate)
    scale = all_rate / (asked + other if among else asked)
    return reads * scale, writes * scale, other * scale


def _latencies(summary: Summary, events: int) -> dict[str, float]:
    found: dict[str, float] = {}
    if "sum" in summary and events:
        found["latency_mean_s"] = float(summary["sum"][0][0]) / events / 1e3
    elif "taken" in summary and events:
        found["latency_mean_s"] = float(summary["taken"][0][0]) / events
    for key, name in (("max", "latency_max_s"),):
        if key in summary:
            value, unit = summary[key][0]
            found[name] = float(value) * _IN_S[unit]
    if "percentile" in summary:
        percent, value, unit = summary["percentile"][0]
        found[f"latency_p{percent}_s"] = float(value) * _IN_S[unit]
    return found


def _mix(summary: Summary) -> tuple[int, int, int] | None:
    transactions = _first(summary, "transactions")
    if not transactions or "q_read" not in summary:
        return None
    reads, writes, other = (
        round((_first(summary, key) or 0) / transactions)
        for key in ("q_read", "q_write", "q_other")
    )
    return reads, writes, other


def _mix_of(values: Mapping[str, float]) -> tuple[int, int, int] | None:
    if not values.get("tps") or "other" not in values:
        return None
    reads, writes, other = (round(values[n] / values["tps"]) for n in ("reads", "writes", "other"))
    return reads, writes, other


def _first(summary: Summary, *keys: str) -> float:
    """Return the first number of the first of these keys that is there, else 0."""
    return next((float(summary[key][0][0]) for key in keys if key in summary), 0.0)
