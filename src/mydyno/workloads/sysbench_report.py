"""The lines that our Lua hook prints under sysbench, read one by one."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import msgspec

from mydyno.model import Interval
from mydyno.workloads.latency import QUANTILE_NAMES, recorded
from mydyno.workloads.lines import failure, no_report, whole

METRICS = ("tps", "reads", "writes", "other", "errors", "reconnects", *QUANTILE_NAMES)

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
    t_s: _Rate
    tps: _Rate
    reads: _Rate
    writes: _Rate
    other: _Rate
    errors: _Rate
    reconnects: _Rate
    queue_length: _Rate
    p99_s: _Rate
    latency_us: list[int] | None = None


_READ = msgspec.json.Decoder(_Session | _Second)


def parse(lines: Iterable[bytes]) -> Iterator[Interval]:
    """Yield one interval for each report, as the lines come; rates are per second.

    Queries are counted apart as `reads` and `writes`; `tps` counts the script's events.  With a
    fixed rate latency includes the time an event has waited in the queue, and `queue_length` is
    the number that wait.  Raises `ValueError` naming the line for sysbench's own fatal errors
    and for what cannot be a report.
    """
    for report in _reports(lines):
        if isinstance(report, _Second):
            yield _interval(report)


def parse_session(lines: Iterable[bytes]) -> Mapping[str, str]:
    """Return what the load's first connection said of itself, empty if it said nothing.

    Keys: `ssl_cipher` and `ssl_version` (empty: no TLS), `client_library` (the file mapped into
    the process), `client_version`, `sysbench`, `luajit`.  Raises `ValueError` as `parse` does.
    """
    for report in _reports(lines):
        if isinstance(report, _Session):
            facts: dict[str, str] = msgspec.structs.asdict(report)
            return facts
    return {}


def _reports(lines: Iterable[bytes]) -> Iterator[_Session | _Second]:
    numbered = whole(lines)
    for number, text in numbered:
        if text.startswith("FATAL: "):
            raise failure("sysbench", text, numbered)
        if text.startswith(_PASSED_OVER):
            continue
        try:
            yield _READ.decode(text)
        except msgspec.DecodeError as error:
            raise no_report("sysbench", number, text, str(error)) from error


def _interval(second: _Second) -> Interval:
    flat = second.latency_us
    latency, quantiles = "", {"latency_p99_s": second.p99_s}
    if flat is not None:
        latency, quantiles = recorded(zip(flat[::2], flat[1::2], strict=True))
    values = {
        name: getattr(second, name)
        for name in ("tps", "reads", "writes", "other", "errors", "reconnects", "queue_length")
    }
    return Interval(second.t_s, values | quantiles, latency)
