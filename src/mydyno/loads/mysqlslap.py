"""The load emulator that comes with the servers: iteration after iteration, each an interval."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from mydyno.loads import protocol
from mydyno.loads.protocol import (
    Reports,
    Target,
    Workload,
    WorkloadInfo,
    no_report,
    prefix,
    text_lines,
)
from mydyno.model import Action, Interval, SpecError

METRICS = ("qps",)
PROGRAMS = ("mysqlslap", "mariadb-slap")

_GENERATED = frozenset(
    {
        "auto_generate_sql_add_autoincrement",
        "auto_generate_sql_guid_primary",
        "auto_generate_sql_secondary_indexes",
        "auto_generate_sql_unique_query_number",
        "auto_generate_sql_unique_write_number",
        "auto_generate_sql_write_number",
        "number_char_cols",
        "number_int_cols",
    }
)
_ANY = frozenset(
    {
        "commit",
        "compress",
        "compression_algorithms",  # MySQL 8.0.18
        "delimiter",
        "detach",
        "engine",
        "init_command",  # MariaDB
        "post_query",
        "pre_query",
        "sql_mode",  # MySQL 8.0
        "ssl",  # MariaDB, MySQL before 8.0
        "ssl_ca",
        "ssl_cert",
        "ssl_cipher",
        "ssl_key",
        "ssl_mode",  # MySQL 5.7.11
        "ssl_verify_server_cert",
        "tls_version",
    }
)
_KEYED = ("auto_generate_sql_guid_primary", "auto_generate_sql_add_autoincrement")
_LIST_BYTES = 120_000  # Linux takes one argument of 128 KiB

# stderr goes to stdout: without errors, queries that all failed look like fast ones.
_MERGED = ("sh", "-c", 'exec "$@" 2>&1', "sh")
_STAMP = "cat /proc/uptime"
_STAMPED = re.compile(r"(?P<now_s>\d+\.\d+) \d+\.\d+")
_RESULT = re.compile(r"[^,]*,[^,]*,(?P<s>\d+\.\d+),[\d.]+,[\d.]+,(?P<users>\d+),(?P<each>\d+)")
_COMPLAINT = re.compile(r"(?:\S*/)?(?:mysqlslap|mariadb-slap): (?P<message>(?:Cannot|Error) .*)")
_WARNED = re.compile(r"(?:\S+: )?(?:\[Warning\]|Warning:|WARNING:|Deprecated program name)")

LoadType = Literal["read", "write", "key", "update", "mixed"]


class SlapParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "mysqlslap"``.

    `queries` are those of one iteration, all threads together.  Either `auto_generate`, or `query`
    with or without `create`: SQL, or the absolute path of a file with it.
    """

    threads: int | list[int] = 1
    queries: int = 10000
    auto_generate: bool = False
    load_type: LoadType = "mixed"
    query: str = ""
    create: str = ""
    options: dict[str, str | int | bool] = {}
    program: str = "mysqlslap"


def cells(name: str, params: SlapParams, response: str | None = None) -> Sequence[Workload]:
    """Return one workload for each thread count, called ``name/threads``.

    Raises `SpecError` naming the key for an unknown option or response, or SQL that is missing.
    """
    place = f"workloads.{name}"
    counts = protocol.thread_counts(place, params.threads)
    _check(place, params, max(counts))
    protocol.check_response(place, response or "qps", METRICS)
    # whether the schema is left as it is; nothing is filled beforehand either way
    data_key = "mysqlslap" if params.auto_generate or params.create else "mysqlslap/kept"
    info = WorkloadInfo(name, response or "qps", data_key, needs_server=True, closed_loop=True)
    return [Mysqlslap(info.at(n), params, n) for n in counts]


@dataclass(frozen=True, slots=True)
class Mysqlslap:
    """One load of mysqlslap at one number of threads; it reports a rate, and no percentiles.

    Its list of concurrencies is the one thing that makes it report as it goes: the same number
    again and again is one iteration after another, each with a result of its own.
    """

    info: WorkloadInfo
    params: SlapParams
    threads: int

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return nothing: what is wanted of tables is made before each iteration."""
        del target
        return ()

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return iterations for hours; `env` is the load tool's own.

        mysqlslap draws the same statements in every run, so that `seed` has no meaning.
        """
        del seed
        argv = (
            *(*prefix(env), *_MERGED, self.params.program),
            *(*_login(target), *_address(target)),
            f"--create-schema={target.database or 'mysqlslap'}",
            *(*self._statements(), f"--number-of-queries={self.params.queries}"),
            *protocol.words(protocol.normal(self.params.options), "1", "0"),
            *("--silent", "--csv", "--iterations=1"),
            *(f"--pre-system={_STAMP}", f"--post-system={_STAMP}"),
            f"--concurrency={self._again_and_again()}",
        )
        return Action(argv)

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield one interval for each iteration."""
        yield from parse(lines)

    def describe(self) -> Sequence[Action]:
        """Return the command that names the program's version."""
        return [Action((self.params.program, "--version"))]

    def _statements(self) -> Iterator[str]:
        given = self.params
        if given.auto_generate:
            yield "--auto-generate-sql"
            yield f"--auto-generate-sql-load-type={given.load_type}"
            return
        if "delimiter" not in given.options:
            yield "--delimiter=;"
        yield f"--query={given.query}"
        # without tables of its own it would drop the schema all the same, and then not find it
        yield f"--create={given.create}" if given.create else "--no-drop"

    def _again_and_again(self) -> str:
        word = f"{self.threads},"
        return (word * (_LIST_BYTES // len(word))).rstrip(",")


def parse(lines: Iterable[bytes]) -> Iterator[Interval]:
    """Yield one interval for each iteration, as the lines come.

    `qps` is the queries of all threads over the time that mysqlslap took for them, which it counts
    in milliseconds, connecting included; making tables before it is not.  `t_s` is from the
    host's clock.  Raises `ValueError` for mysqlslap's complaints, after which it would go on, and
    for what cannot be a report.
    """
    first_s = last_s = None
    for number, text in text_lines(lines):
        if stamp := _STAMPED.fullmatch(text):
            last_s = float(stamp["now_s"])
            first_s = last_s if first_s is None else first_s
        elif complaint := _COMPLAINT.match(text):
            raise ValueError(f"mysqlslap: {complaint['message']}")
        elif (result := _RESULT.fullmatch(text)) and first_s is not None and last_s is not None:
            yield Interval(round(last_s - first_s, 2), {"qps": _rate(result)})
        elif not _WARNED.match(text):
            raise no_report("mysqlslap", number, text)


def _rate(result: re.Match[str]) -> float:
    seconds, queries = float(result["s"]), int(result["users"]) * int(result["each"])
    if not seconds or not queries:
        raise ValueError(
            f"mysqlslap: {queries} queries in {seconds:g} s: too short to compute a rate, as it "
            "counts milliseconds; increase queries until an iteration takes about a second"
        )
    return queries / seconds


def _login(target: Target) -> tuple[str, ...]:
    """Return who it is; the password is in an option file that only its owner can read."""
    if target.password_file == Path():
        return ("--no-defaults", f"--user={target.user}")
    return (f"--defaults-file={target.password_file}",)


def _address(target: Target) -> tuple[str, ...]:
    if target.socket:
        return ("--protocol=socket", f"--socket={target.socket}")
    return ("--protocol=tcp", f"--host={target.tcp_host}", f"--port={target.tcp_port}")


def _check(place: str, params: SlapParams, threads: int) -> None:
    known = _ANY | _GENERATED if params.auto_generate else _ANY
    protocol.check_names(params.options, known, f"{place}.options")
    protocol.check_range(f"{place}.queries", params.queries, threads, 10**9)
    given = protocol.normal(params.options)
    if params.program not in PROGRAMS and not params.program.startswith("/"):
        raise SpecError(f"{place}.program = {params.program!r}: must be {' or '.join(PROGRAMS)}, "
                        "or the absolute path of one")  # fmt: skip
    if params.auto_generate == bool(params.query):
        raise SpecError(f"{place}: give either auto_generate = true or query")
    if "," in str(given.get("engine", "")):
        raise SpecError(f"{place}.options.engine: one engine; another one is another workload")
    if params.auto_generate:
        _check_generated(place, params)
    for key, sql in (("query", params.query), ("create", params.create)):
        if sql.endswith(".sql") and not sql.startswith("/"):
            raise SpecError(f"{place}.{key} = {sql!r}: give the file's absolute path")


def _check_generated(place: str, params: SlapParams) -> None:
    if params.create:
        raise SpecError(f"{place}.create: auto_generate makes its own table; leave one of them out")
    given = protocol.normal(params.options)
    if params.load_type in {"key", "update"} and not any(given.get(name) for name in _KEYED):
        raise SpecError(
            f"{place}.load_type = {params.load_type!r}: it needs a key; set one of "
            f"{' and '.join(f'options.{name}' for name in _KEYED)} to true"
        )
