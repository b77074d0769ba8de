"""Where the figures of one sysbench run do not follow from each other."""

from collections.abc import Iterator, Sequence

from mydyno.model import Interval
from mydyno.workloads.foreign.number import PrintedNumber, shown
from mydyno.workloads.foreign.parsed_run import Caveat
from mydyno.workloads.foreign.sysbench_totals import Summary, Totals, is_cut

_TAIL_S = 0.25  # a report comes so late at most, and the last one may be missing
_RATES = {"transactions": "transactions", "queries": "queries", "requests": "read/write requests",
          "others": "other operations"}  # fmt: skip
_REQUESTS = {"reads": "reads", "writes": "writes", "iops_read": "reads", "iops_write": "writes",
             "executed": "iops"}  # fmt: skip
_WORK = {"tps": "transactions", "iops": "requests"}
_MIB = 2**20


def checks(summary: Summary, intervals: Sequence[Interval], totals: Totals) -> list[Caveat]:
    """Return each printed figure that its counts, seconds or reports do not give (within 0.1 %)."""
    if is_cut(summary):
        return [Caveat(-1, "cut off: no closing report; totals are computed from its reports")]
    found = [*_few(list(_rates(summary, totals))), *_bytes(summary, totals)]
    found += [*_sums(summary, totals)]
    if totals.implied:
        key = next(k for k in ("queries", "requests", "transactions") if k in summary)
        problem = f"no total time: its printed rate of {_RATES[key]} says {totals.seconds:.2f} s"
        found.append(Caveat(summary[key][1], problem))
    if intervals and totals.response != "eps":
        found += _reports(summary, intervals, totals)
    return found


def _few(rates: Sequence[Caveat]) -> Iterator[Caveat]:
    """Yield the first of them, as one wrong clock shows in all rates."""
    for caveat in rates[:1]:
        more = f" (and {len(rates) - 1} more rates alike)" if len(rates) > 1 else ""
        yield Caveat(caveat.line, caveat.text + more)


def _rates(summary: Summary, totals: Totals) -> Iterator[Caveat]:
    for key, name in _RATES.items():
        if key in summary:
            (count, rate), line = summary[key]
            yield from _compared(name, shown(rate), float(count) / totals.seconds, line)
    values = totals.values
    for key, name in _REQUESTS.items():
        if key in summary:
            texts, line = summary[key]
            yield from _compared(name, shown(texts[0]), values[name], line)
    if "eps" in summary:
        (rate,), line = summary["eps"]
        yield from _compared("events", shown(rate), totals.events / totals.seconds, line)


def _bytes(summary: Summary, totals: Totals) -> Iterator[Caveat]:
    """Yield a doubt for bytes that are not the printed requests times their size."""
    for key, requests, name in (("mib_read", "reads", "reads"), ("mib_written", "writes", "writes"),
                                ("iops_read", "iops_read", "reads"),
                                ("iops_write", "iops_write", "writes")):  # fmt: skip
        if key in summary and requests in summary and totals.values[name]:
            each = totals.values[f"{name[:-1]}_bytes"] / totals.values[name]
            rate = shown(summary[requests][0][0])
            printed = shown(summary[key][0][-1])
            found = rate.value * each / _MIB
            if not printed.agrees(found, rate.half * each / _MIB):
                text = f"prints {printed.value:g} MiB/s; its {rate.value:g} {name} per second are"
                yield Caveat(summary[key][1], f"{text} {found:.2f}")


def _sums(summary: Summary, totals: Totals) -> Iterator[Caveat]:
    parts = [float(summary[k][0][0]) for k in ("q_read", "q_write", "q_other") if k in summary]
    if "q_total" in summary and len(parts) == 3:  # noqa: PLR2004
        (total,), line = summary["q_total"]
        if sum(parts) != float(total):
            yield Caveat(
                line, f"prints {total} queries; reads, writes and others are {sum(parts):g}"
            )
    if "avg" in summary and "latency_mean_s" in totals.values:
        (value, unit), line = summary["avg"]
        scale = 1.0 if unit == "s" else 1e-3
        mean, found = PrintedNumber(float(value) * scale, shown(value).half * scale), totals.values
        if not mean.agrees(found["latency_mean_s"]):
            problem = f"prints a mean of {float(value):g}; its sum and count give"
            yield Caveat(line, f"{problem} {found['latency_mean_s'] / scale:.4g}")


def _reports(summary: Summary, intervals: Sequence[Interval], totals: Totals) -> Iterator[Caveat]:
    """Yield a doubt if the reports do not add up to the sum, the time after the last one aside."""
    name, block = totals.response, 1.0
    rates = [i.values.get(name, 0.0) for i in intervals]
    if name == "iops":
        rates = [i.values.get("read_bytes", 0.0) + i.values.get("write_bytes", 0.0)
                 for i in intervals]  # fmt: skip
        both = totals.values["read_bytes"] + totals.values["write_bytes"]
        block = both / totals.values["iops"] if totals.values["iops"] else 1.0
    ends = [0.0, *(i.t_s for i in intervals)]
    reported = sum(r * (b - a) for r, a, b in zip(rates, ends, ends[1:], strict=False)) / block
    total = totals.values[name] * totals.seconds
    missing_s = abs(totals.seconds - ends[-1]) + _TAIL_S
    slack = max(rates) / block * missing_s
    if not PrintedNumber(reported, slack).agrees(total, 0.004 * total):
        line = next(
            (at for key, (_, at) in summary.items() if key in {"transactions", "events"}), -1
        )
        yield Caveat(
            line, f"its reports add up to {reported:.0f} {_WORK[name]}, its sum is {total:.0f}"
        )


def _compared(name: str, printed: PrintedNumber, found: float, line: int) -> Iterator[Caveat]:
    if not printed.agrees(found):
        problem = f"prints {printed.value:.7g} {name} per second; its count and seconds give"
        yield Caveat(line, f"{problem} {found:.7g}")
