"""The lines that our Lua hook prints under sysbench, read one by one."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import Annotated

import msgspec

from mydyno.model import Interval, of_kind
from mydyno.workloads.histogram import QUANTILE_NAMES, recorded
from mydyno.workloads.lines import failure, no_report, text_lines

METRICS = ("tps", "reads", "writes", "other", "errors", "reconnects", *QUANTILE_NAMES)

# The kinds of TPC-C's transactions, and what the rate of each is called.
KIND_RATES = {
    "new_order": "new_orders",
    "payment": "payments",
    "order_status": "order_statuses",
    "delivery": "deliveries",
    "stock_level": "stock_levels",
}

_Rate = Annotated[float, msgspec.Meta(ge=0)]
_PASSED_OVER = ("WARNING: ", "ALERT: ", "DEBUG: ", "(last message repeated ")


class _Session(msgspec.Struct, frozen=True, tag_field="event", tag="session"):
    ssl_cipher: str = ""
    ssl_version: str = ""
    client_library: str = ""
    client_version: str = ""
    sysbench: str = ""
    luajit: str = ""


class _Second(msgspec.Struct, frozen=True, tag_field="event", tag="second"):
    t_s: Annotated[float, msgspec.Meta(gt=0)]
    tps: _Rate
    reads: _Rate
    writes: _Rate
    other: _Rate
    errors: _Rate
    reconnects: _Rate
    queue_length: _Rate
    p99_s: _Rate
    latency_us: list[int] | None = None
    kinds: dict[str, list[int]] = {}


_READ = msgspec.json.Decoder(_Session | _Second)


def parse(lines: Iterable[bytes]) -> Iterator[Interval]:
    """Yield one interval for each report, as the lines come; rates are per second.

    Queries are counted apart as `reads` and `writes`; `tps` counts the script's events.  With a
    fixed rate latency includes the time an event has waited in the queue, and `queue_length` is
    the number that wait.  Where latencies come by kind, each has its rate and its histogram, and
    throughput and histogram of the whole are the sums of them.  Raises `ValueError` naming the
    line for sysbench's own fatal errors and for what cannot be a report.
    """
    before_s = 0.0
    for report in _reports(lines):
        if isinstance(report, _Second):
            yield _interval(report, report.t_s - before_s)
            before_s = report.t_s


def parse_session(lines: Iterable[bytes]) -> Mapping[str, str]:
    """Return the session status of the load's first connection, empty if not reported.

    Keys: `ssl_cipher` and `ssl_version` (empty: no TLS), `client_library` (the file mapped into
    the process), `client_version`, `sysbench`, `luajit`.  Raises `ValueError` as `parse` does.
    """
    for report in _reports(lines):
        if isinstance(report, _Session):
            facts: dict[str, str] = msgspec.structs.asdict(report)
            return facts
    return {}


def _reports(lines: Iterable[bytes]) -> Iterator[_Session | _Second]:
    numbered = text_lines(lines)
    for number, text in numbered:
        if text.startswith("FATAL: "):
            raise failure("sysbench", text, numbered)
        if text.startswith(_PASSED_OVER):
            continue
        try:
            yield _READ.decode(text)
        except msgspec.DecodeError as error:
            raise no_report("sysbench", number, text, str(error)) from error


def _interval(second: _Second, span_s: float) -> Interval:
    values = {
        name: getattr(second, name)
        for name in ("tps", "reads", "writes", "other", "errors", "reconnects", "queue_length")
    }
    if second.kinds:  # sysbench counts one when its thread has thought, too
        rates = {kind: sum(flat[1::2]) / span_s for kind, flat in second.kinds.items()}
        values |= {KIND_RATES.get(kind, kind): rate for kind, rate in rates.items()}
        values["tps"] = sum(rates.values())
    kinds: dict[str, str] = {}
    for kind, flat in second.kinds.items():
        kinds[kind], quantiles = recorded(_pairs(flat))
        values |= {of_kind(name, kind): value for name, value in quantiles.items()}
    every = list(chain(*second.kinds.values())) if second.kinds else second.latency_us
    if every is None:
        return Interval(second.t_s, values | {"latency_p99_s": second.p99_s})
    latency, quantiles = recorded(_pairs(every))
    return Interval(second.t_s, values | quantiles, latency, kinds)


def _pairs(flat: list[int]) -> Iterable[tuple[int, int]]:
    return zip(flat[::2], flat[1::2], strict=True)
