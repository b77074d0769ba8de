"""One run of sysbench, from its lines to what it was and what it gave."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mydyno.logs.text import (
    Caveat,
    CommandLine,
    ParsedRun,
    PrintedNumber,
    brief,
    chosen,
    once,
    shown,
    size,
)
from mydyno.model import Interval

Summary = Mapping[str, tuple[tuple[str, ...], int]]

_MIB = 2**20
_IN_S = {"": 1e-3, "ms": 1e-3, "s": 1.0}  # 1.0 and later name ms in a heading
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


def totals_of(
    summary: Summary, intervals: Sequence[Interval], block_bytes: int, threads: int = 1
) -> Totals:
    """Return the sums of a run; raise `ValueError` where nothing can be computed."""
    if is_cut(summary):
        return _of_intervals(intervals, block_bytes)
    seconds, implied = seconds_of(summary, intervals, threads)
    events = int(_first(summary, "events") or _first(summary, "transactions") or 0)
    files = any(key in summary for key in _FILES)
    values = _files(summary, seconds, events, block_bytes) if files else _statements(
        summary, seconds, events)  # fmt: skip
    values |= {"seconds": seconds, **_latencies(summary, events), **_unfairness(summary)}
    response = next(name for name in ("iops", "tps", "eps") if name in values)
    mix = None
    if "q_read" in summary:
        queries = [_first(summary, key) for key in ("q_read", "q_write", "q_other")]
        mix = _mix(_first(summary, "transactions"), queries)
    return Totals(response, values, seconds, events, mix, implied)


def _unfairness(summary: Summary) -> dict[str, float]:
    """Return the standard deviation of the threads' events over their mean, where printed."""
    average, deviation = map(float, summary["fair"][0][:2]) if "fair" in summary else (0.0, 0.0)
    return {"unfairness_ratio": deviation / average} if average else {}


def is_cut(summary: Summary) -> bool:
    """Return whether a run has no closing report, or not enough of it."""
    return not any(key in summary for key in ("events", "transactions", *_FILES))


def seconds_of(summary: Summary, intervals: Sequence[Interval], threads: int) -> tuple[float, bool]:
    """Return how long a run was in seconds, and whether it was computed from other figures.

    The file test of 1.1 prints rates and latencies only: it was as long as its reports, or about as
    its latencies together, which its threads had side by side.
    """
    if seconds := _first(summary, "seconds"):
        return seconds, False
    for key in ("queries", "requests", "transactions"):
        texts, _ = summary.get(key, ((), 0))
        if texts and float(texts[0]) and float(texts[1]):
            return float(texts[0]) / float(texts[1]), True
    rates_only = "events" not in summary and {"iops_read", "iops_write"} & summary.keys()
    if rates_only and (busy_s := _first(summary, "sum") / 1e3):
        return (intervals[-1].t_s if intervals else busy_s / threads), True
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
    mix = None
    if "other" in values:
        mix = _mix(values.get("tps", 0.0), [values[name] for name in ("reads", "writes", "other")])
    return Totals(response, values | {"seconds": before_s}, before_s, 0, mix)


def _statements(summary: Summary, seconds: float, events: int) -> dict[str, float]:
    found = {
        name: float(summary[key][0][0]) / seconds for key, name in _COUNTS.items() if key in summary
    }
    if "tps" not in found:
        if "q_read" in summary:
            raise ValueError("queries without a line of transactions that could be read")
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
    elif "avg" in summary:
        found["latency_mean_s"] = float(summary["avg"][0][0]) * _IN_S[summary["avg"][0][1]]
    if "max" in summary:
        value, unit = summary["max"][0]
        found["latency_max_s"] = float(value) * _IN_S[unit]
    for key, (texts, _) in summary.items():
        if key.startswith("percentile"):
            percent, value, unit = texts
            found[f"latency_p{percent}_s"] = float(value) * _IN_S[unit]
    return {name: value for name, value in found.items() if value}  # 0.00 ms is no latency


def _mix(transactions: float, queries: Sequence[float]) -> tuple[int, int, int] | None:
    """Return the queries of one transaction: reads, writes, others; None without transactions."""
    if not transactions:
        return None
    reads, writes, other = (round(count / transactions) for count in queries)
    return reads, writes, other


def _first(summary: Summary, *keys: str) -> float:
    """Return the first number of the first of these keys that is there, else 0."""
    return next((float(summary[key][0][0]) for key in keys if key in summary), 0.0)


_TAIL_S = 0.25  # a report comes so late at most, and the last one may be missing
_RATES = {"transactions": "transactions", "queries": "queries", "requests": "read/write requests",
          "others": "other operations"}  # fmt: skip
_REQUESTS = {"reads": "reads", "writes": "writes", "iops_read": "reads", "iops_write": "writes",
             "executed": "iops"}  # fmt: skip
_WORK = {"tps": "transactions", "iops": "requests"}


def checks(summary: Summary, intervals: Sequence[Interval], totals: Totals) -> list[Caveat]:
    """Return each printed figure that its counts, seconds or reports do not give (within 0.1 %)."""
    if is_cut(summary):
        return [Caveat(-1, "cut off: no closing report; totals are computed from its reports")]
    found = [*_few(list(_rates(summary, totals))), *_bytes(summary, totals)]
    found += [*_sums(summary, totals)]
    if totals.implied:
        key = next((k for k in ("queries", "requests", "transactions") if k in summary), "sum")
        what = (
            f"printed rate of {_RATES[key]} implies" if key in _RATES else "latencies imply about"
        )
        problem = f"no total time: its {what} {totals.seconds:.2f} s"
        found.append(Caveat(summary[key][1], problem))
    elif intervals and totals.response != "eps":
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
    """Yield a caveat for bytes that are not the printed requests times their size."""
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
    """Yield a caveat if the reports do not add up to the sum, the time after the last one aside."""
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


_RESULTS = ("transactions", "requests", "performed", "executed", "reads", "writes",
            "iops_read", "iops_write", "events", "speed")  # fmt: skip
_MODES = {
    "sequential read": "seqrd",
    "sequential write (creation)": "seqwr",
    "sequential rewrite": "seqrewr",
    "random read": "rndrd",
    "random write": "rndwr",
    "random r/w": "rndrw",
}
_MIXES = {  # queries of a transaction: read, write, other (sysbench 0.5 and later)
    (14, 4, 2): "oltp_read_write",
    (14, 0, 2): "oltp_read_only",
    (0, 4, 2): "oltp_write_only",
    (1, 0, 0): "oltp_point_select",
}
_OPTIONS = {
    "threads": ("threads", "num_threads"),
    "tables": ("tables", "oltp_tables_count", "oltp_num_tables"),
    "table_size": ("table_size", "oltp_table_size"),
    "scale": ("scale",),
    "rate": ("rate", "tx_rate"),
    "mode": ("file_test_mode",),
    "block_size": ("file_block_size",),
    "file_total_size": ("file_total_size",),
    "files": ("file_num",),
    "flags": ("file_extra_flags",),
    "db_ps_mode": ("db_ps_mode",),
    "distribution": ("rand_type", "oltp_dist_type"),
}
_WORDS = ("mode", "flags", "db_ps_mode", "distribution")  # options that are no numbers
_NUMBER = re.compile(r"\d+(?:\.\d+)?[kKmMgGtT]?(?:i?[bB])?")
_KINDS = ("oltp", "test")  # traits that name the load
_SIZES = ("block_size", "file_total_size")
# The mix of queries is more precise than these names.
_OLD_TESTS = ("oltp", "oltp_legacy", "complex", "select")
_DEFAULT_BLOCK = 16384
_FLAGS = {"(none)": "none", "0": "none", "16384": "direct", "directio": "direct"}


@dataclass(slots=True)
class SysbenchRun:
    """What was read of one run; `traits` and `summary` hold texts, and the line they are from."""

    first: int
    command: CommandLine | None = None
    version: str = ""
    announced: bool = False
    traits: dict[str, tuple[str, int]] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    summary: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    failures: list[Caveat] = field(default_factory=list)

    @property
    def has_result(self) -> bool:
        """Return whether there is a result in it."""
        return bool(self.intervals) or any(key in self.summary for key in _RESULTS)


def reading_of(run: SysbenchRun, lines: Sequence[int], raw: bytes) -> ParsedRun:
    """Return the parsed run; raise `ValueError` for a test that cannot be compared."""
    traits = _traits(run)
    block_bytes = int(float(traits.get("block_size") or _DEFAULT_BLOCK))
    threads = traits.get("threads", "1")
    totals = totals_of(run.summary, run.intervals, block_bytes, int(threads) or 1)
    is_file = "iops" in totals.values
    caveats = checks(run.summary, run.intervals, totals)
    caveats += _of_the_command(run, totals)
    if is_file and "block_size" not in traits:
        problem = f"no block size: sysbench's default of {_DEFAULT_BLOCK} is taken"
        caveats.append(Caveat(run.first, problem))
    traits |= {} if "threads" in traits else _threads(run, totals)
    intervals = [_completed(i, block_bytes) for i in run.intervals] if is_file else run.intervals
    name = traits.pop("mode", "fileio") if is_file else _statement_name(run, totals)
    return ParsedRun(
        name=name,
        response=totals.response,
        traits={k: brief(float(v)) if k in _SIZES else v for k, v in traits.items()},
        totals=totals.values,
        intervals=tuple(intervals) or once(totals.values),
        lines=tuple(sorted(lines)),
        raw=raw,
        caveats=(*caveats, *(Caveat(f.line, f"sysbench: {f.text}") for f in run.failures)),
    )


def _traits(run: SysbenchRun) -> dict[str, str]:
    """Return the traits from the output, or else from the command."""
    options = run.command.options if run.command else {}
    given = chosen(options, _OPTIONS).items()
    # a command from a script may have --threads=$t
    found = {name: text for name, text in given if name in _WORDS or _NUMBER.fullmatch(text)}
    found |= {name: value for name, (value, _) in run.traits.items() if name not in _KINDS}
    found["mode"] = _MODES.get(found.get("mode", ""), found.get("mode", ""))
    for name in _SIZES:
        if name in found:
            found[name] = f"{size(found[name].replace(' ', '')).value:.0f}"
    if run.version:
        found["sysbench"] = ".".join(run.version.split(".")[:2])
    if "flags" in found:
        found["flags"] = _FLAGS.get(found["flags"], found["flags"])
    if run.announced and found["mode"]:
        found.setdefault("fsync", "none")
    if found["mode"] != "rndrw":
        found.pop("rwratio", None)
    if found.get("rate") == "0":
        del found["rate"]
    return {name: value for name, value in found.items() if value}


def _threads(run: SysbenchRun, totals: Totals) -> dict[str, str]:
    """Return the number of threads computed from the events of each, if possible."""
    fair = run.summary.get("fair")
    if fair is None or not totals.events or not float(fair[0][0]):
        return {}
    return {"threads": f"{round(totals.events / float(fair[0][0]))}"}


def _statement_name(run: SysbenchRun, totals: Totals) -> str:
    """Return the script of the command, else the one whose transactions are made like these."""
    script = run.command.words[0] if run.command and run.command.words else ""
    if run.command and "test" in run.command.options:
        script = run.command.options["test"]
    script = re.sub(r"\.lua$", "", script.rsplit("/", 1)[-1])
    if script and script not in {*_OLD_TESTS, "run"}:
        return script
    if mix := totals.mix:
        return _MIXES.get(mix, "-".join(["oltp", *map(str, mix)]))
    test = "cpu" if "primes" in run.traits else run.traits.get("test", ("events", 0))[0].lower()
    return test if totals.response == "eps" else "oltp"


def _completed(interval: Interval, block_bytes: int) -> Interval:
    """Return an interval of the file test with its requests, which sysbench gives as bytes."""
    values: dict[str, float] = dict(interval.values)
    for name in ("read", "write"):
        values[f"{name}s"] = values.get(f"{name}_bytes", 0.0) / block_bytes
    values["iops"] = values["reads"] + values["writes"]
    return Interval(interval.t_s, values)


def _of_the_command(run: SysbenchRun, totals: Totals) -> list[Caveat]:
    """Return where the command above a result is not the one that gave it."""
    options: Mapping[str, str] = run.command.options if run.command else {}
    asked = options.get("time") or options.get("max_time") or "0"
    caveats: list[Caveat] = []
    guessed = totals.implied and totals.response == "iops"
    measured = not is_cut(run.summary) and not guessed
    asked_s = int(asked) if asked.isdigit() and measured else 0
    if asked_s and abs(asked_s - totals.seconds) > 1 + 0.05 * asked_s:
        problem = f"the command asks for {asked} s, but its result is of {totals.seconds:.1f} s"
        caveats.append(Caveat(run.first, f"{problem}; check that they belong together"))
    shown, line = run.traits.get("threads", ("", 0))
    requested = options.get("threads") or options.get("num_threads") or shown
    if shown and requested.isdigit() and shown != requested:
        problem = f"the command asks for {requested} threads, its result has {shown}"
        caveats.append(Caveat(line, problem))
    return caveats
