"""What all sysbench scripts share: options, client file, report."""

import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Annotated

import msgspec

from mydyno.loads.histogram import QUANTILE_NAMES, recorded
from mydyno.loads.protocol import (
    Options,
    Reports,
    Target,
    failure,
    no_report,
    normal,
    prefix,
    text_lines,
    words,
)
from mydyno.model import Action, Interval, SpecError, of_kind
from mydyno.model.text import uncommented

SCRIPTS = (
    "bulk_insert",
    "oltp_delete",
    "oltp_insert",
    "oltp_point_select",
    "oltp_read_only",
    "oltp_read_write",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_write_only",
    "select_random_points",
    "select_random_ranges",
)

# Options that decide what `prepare` writes: tables with equal ones are the same data set.
SHAPE = frozenset(
    {
        "auto_inc",
        "create_secondary",
        "create_table_options",  # 1.1
        "mysql_storage_engine",
        "secondary",
    }
)
# `prepare` draws the secondary key's values by these, so that they shape the data as well.
RANDOM = frozenset(
    {
        "rand_pareto_h",
        "rand_spec_iter",
        "rand_spec_pct",
        "rand_spec_res",
        "rand_type",
        "rand_zipfian_exp",  # 1.1
    }
)
CLIENT = frozenset(
    {
        "db_ps_mode",
        "mysql_compression",
        "mysql_compression_algorithms",  # 1.1
        "mysql_ignore_errors",
        "mysql_ssl",
        "mysql_ssl_ca",  # 1.1
        "mysql_ssl_cert",  # 1.1
        "mysql_ssl_cipher",
        "mysql_ssl_key",  # 1.1
    }
)
GENERAL = frozenset(
    {
        "thread_init_timeout",  # 1.1
        "thread_stack_size",
        "validate",
    }
)
_TRANSACTION = frozenset(
    {
        "delete_inserts",
        "distinct_ranges",
        "index_updates",
        "non_index_updates",
        "order_ranges",
        "point_selects",
        "range_selects",
        "range_size",
        "reconnect",  # 1.1
        "simple_ranges",
        "skip_trx",
        "sum_ranges",
    }
)
_OWN = {
    "select_random_points": frozenset({"random_points"}),
    "select_random_ranges": frozenset({"number_of_ranges", "delta"}),
}
FILEIO = frozenset(
    {
        "file_async_backlog",
        "file_fsync_all",
        "file_fsync_end",
        "file_fsync_mode",
        "file_io_mode",
        "file_merged_requests",
        "file_rw_ratio",
    }
)


def known(script: str) -> frozenset[str]:
    """Return the options that a spec may give `script`, from ``sysbench SCRIPT help``."""
    everywhere = CLIENT | RANDOM | GENERAL
    if script == "bulk_insert":
        return everywhere
    return everywhere | SHAPE | _TRANSACTION | _OWN.get(script, frozenset())


LUA = Path(__file__).parent / "lua"
_HIGHEST_SEED = 2**31 - 1


def endless(seed: int, option: str, *, verbosity: int) -> tuple[str, ...]:
    """Return the last words of a run that reports every second; `option` takes the seed."""
    return (
        f"--{option}={seed % _HIGHEST_SEED or _HIGHEST_SEED}",
        *("--time=0", "--events=0", "--report-interval=1"),
        *("--percentile=99", f"--verbosity={verbosity}"),
        "run",
    )


def chosen(options: Options, names: Collection[str]) -> tuple[str, ...]:
    """Return the words of the options that are among `names`."""
    given = {name: value for name, value in normal(options).items() if name in names}
    return words(given, "on", "off")


def versions() -> Sequence[Action]:
    """Return commands that name sysbench's version and the libraries it would load."""
    path = shutil.which("sysbench") or "sysbench"
    return [Action((path, "--version")), Action(("ldd", path))]


class Hooked:
    """What workloads under our Lua hook have in common."""

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield the intervals that our hook reports."""
        yield from parse(lines)

    def session(self, lines: Iterable[bytes]) -> Mapping[str, str]:
        """Return what the load's first connection reported: TLS, client library, versions."""
        return parse_session(lines)

    def describe(self) -> Sequence[Action]:
        """Return commands that name sysbench's version and the libraries it would load."""
        return versions()


_LINE_BYTES = 255  # sysbench reads a config file through a buffer of 256 bytes
_TLS = "ssl-ca"  # an option file that names an authority asks for TLS
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "r": "\r", "s": " "}


def connection_file(target: Target) -> Path:
    """Write ``sysbench.cfg`` (mode 0600) into the target's work directory and return its path.

    User and password come from the target's client option file, so that neither is ever in an
    argument vector or in the environment.  The file is made on the machine we run on.  Raises
    `SpecError` for a value that sysbench's config file cannot hold.
    """
    path = target.work / "sysbench.cfg"
    text = "".join(_line(name, value) for name, value in _settings(target).items() if value)
    part = path.with_suffix(f".{os.getpid()}")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    part.replace(path)
    return path


def client_section(text: str) -> Mapping[str, str]:
    """Return the ``[client]`` options of a MySQL option file, unquoted and unescaped."""
    found: dict[str, str] = {}
    section = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            section = line.strip("[]")
        elif section == "client" and "=" in line and line[0] not in "#;":
            name, _, value = line.partition("=")
            found[name.strip().replace("_", "-")] = _unquoted(uncommented(value.strip()))
    return found


def sysbench_argv(target: Target, env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the command that starts sysbench with an environment, where it can speak TLS.

    Version 1.0 reads ``cacert.pem``, ``client-cert.pem`` and ``client-key.pem`` by these names
    from the folder that it is started in.
    """
    given = client_section(_read(target.password_file))
    folder = Path(given[_TLS]).parent if _TLS in given else None
    return (*prefix(env, directory=folder), "sysbench")


def _settings(target: Target) -> dict[str, str]:
    given = client_section(_read(target.password_file))
    address = (
        {"mysql-socket": target.socket}
        if target.socket
        # the client libraries take "localhost" to mean the default socket
        else {
            "mysql-host": "127.0.0.1" if target.tcp_host == "localhost" else target.tcp_host,
            "mysql-port": str(target.tcp_port),
        }
    )
    return {
        "mysql-ssl": "on" if _TLS in given else "",
        "mysql-user": target.user or given.get("user", ""),
        "mysql-password": given.get("password", ""),
        "mysql-db": target.database,
        **address,
    }


def _read(path: Path) -> str:
    if path == Path():
        return ""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot read the client option file: {error.strerror}") from error


def _line(name: str, value: str) -> str:
    quote = next((mark for mark in "\"'" if mark not in value), "")
    line = f"{name}={quote}{value}{quote}\n"
    if not quote or "\n" in value or len(line.encode()) > _LINE_BYTES:
        raise SpecError(
            f"{name}: sysbench cannot read a value with both kinds of quotes, a line end, or a "
            f"line of more than {_LINE_BYTES} bytes; choose another value for the load's user"
        )
    return line


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        value = value[1:-1]
    parts = value.split("\\\\")
    return "\\".join(_unescaped(part) for part in parts)


def _unescaped(text: str) -> str:
    for mark, meant in _ESCAPES.items():
        text = text.replace(f"\\{mark}", meant)
    return text


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
ACK = "ack "  # a commit, of the ledger's script
_PASSED_OVER = (ACK, "WARNING: ", "ALERT: ", "DEBUG: ", "(last message repeated ")


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
    threads: tuple[int, ...] = ()


_READ = msgspec.json.Decoder(_Session | _Second)


def parse(lines: Iterable[bytes]) -> Iterator[Interval]:
    """Yield one interval for each report, as the lines come; rates are per second.

    Queries are counted apart as `reads` and `writes`; `tps` counts the script's events.  With a
    fixed rate latency includes the time an event has waited in the queue, and `queue_length` is
    the number that wait.  Where latencies come by kind, each has its rate and its histogram, and
    throughput and histogram of all are the sums of them.  Raises `ValueError` naming the
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
        values |= {"latency_p99_s": second.p99_s}
        return Interval(second.t_s, values, by_thread=second.threads)
    latency, quantiles = recorded(_pairs(every))
    return Interval(second.t_s, values | quantiles, latency, kinds, second.threads)


def _pairs(flat: list[int]) -> Iterable[tuple[int, int]]:
    return zip(flat[::2], flat[1::2], strict=True)
