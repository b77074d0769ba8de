"""The database scripts that come with sysbench, run under our own Lua hook."""

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from mydyno.loads import protocol, sysbench
from mydyno.loads.protocol import Reports, Target, Workload
from mydyno.loads.sysbench import METRICS, connection_file, parse, parse_session, sysbench_argv
from mydyno.model import Action, SpecError

_LUA = Path(__file__).parent / "lua"
_HIGHEST_SEED = 2**31 - 1
_DATA_SEED = 1  # 0 would take the clock


class OltpParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "sysbench-oltp"``.

    `rate` is events per second, 0 for a closed loop; `options` are any further options of the
    script, of the random numbers and of the client, as ``sysbench SCRIPT help`` names them.
    """

    script: str
    threads: int | list[int] = 1
    tables: int = 1
    table_size: int = 10000
    rate: int = 0
    options: dict[str, str | int | float | bool] = {}


def cells(name: str, params: OltpParams, response: str | None = None) -> Sequence[Workload]:
    """Return one workload for each thread count, called ``name/threads``.

    Raises `SpecError` naming the key for an unknown script, option or response, or a value out
    of range.
    """
    place = f"workloads.{name}"
    _check(place, params)
    protocol.check_response(place, response or "tps", METRICS)
    return [
        SysbenchOltp(f"{name}/{threads}", response or "tps", params, threads)
        for threads in protocol.thread_counts(place, params.threads)
    ]


@dataclass(frozen=True, slots=True)
class SysbenchOltp:
    """One bundled script at one number of threads.

    Overhead of the hook: see docs/reference/workloads.md.  It runs where mydyno runs: the hook
    and the connection file are read from this machine's disk.
    """

    name: str
    response: str
    params: OltpParams
    threads: int

    @property
    def needs_server(self) -> bool:
        """Return whether its target is a server rather than files."""
        return True

    @property
    def closed_loop(self) -> bool:
        """Return whether it is a closed loop."""
        return self.params.rate == 0

    @property
    def data_key(self) -> str:
        """Return the tables' number, size and shape; the scripts but one share a schema."""
        if self.params.script == "bulk_insert":
            return f"sysbench/bulk_insert/{self.threads}"
        shape = self._chosen(sysbench.SHAPE | sysbench.RANDOM)
        loaded = "" if self._loads_rows() else "/empty"
        size = f"{self.params.tables}x{self.params.table_size}{loaded}"
        return "/".join(["sysbench/sbtest", size, *protocol.words(shape, "on", "off")])

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that drop the tables, load them, and refresh their statistics."""
        cores = os.cpu_count() or 1
        loaders = min(self.params.tables, cores)
        config = f"--config-file={connection_file(target)}"
        chosen = sysbench.SHAPE | sysbench.RANDOM | sysbench.CLIENT
        given = (*self._tables(), *protocol.words(self._chosen(chosen), "on", "off"))
        client = protocol.words(self._chosen(sysbench.CLIENT), "on", "off")
        tool = sysbench_argv(target, {})
        if self.params.script == "bulk_insert":
            made = (*tool, "bulk_insert", config, f"--threads={self.threads}", *given)
            return [Action((*made, command)) for command in ("cleanup", "prepare")]
        script = (*tool, self.params.script, config, *given, f"--rand-seed={_DATA_SEED}")
        tables = f"--tables={self.params.tables}"
        return [
            Action((*script, "cleanup")),
            Action((*script, f"--threads={loaders}", "prepare")),
            Action((*tool, str(_LUA / "settle.lua"), config, tables, *client, "settle")),
        ]

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return an endless run that reports every second; `env` is the load tool's own."""
        hook = {"MYDYNO_SCRIPT": self.params.script}
        argv = (
            *sysbench_argv(target, dict(env) | hook),
            str(_LUA / "report.lua"),
            f"--config-file={connection_file(target)}",
            *self._tables(),
            *protocol.words(protocol.normal(self.params.options), "on", "off"),
            f"--threads={self.threads}",
            f"--rate={self.params.rate}",
            f"--rand-seed={seed % _HIGHEST_SEED or _HIGHEST_SEED}",
            *("--time=0", "--events=0", "--report-interval=1"),
            *("--percentile=99", "--verbosity=2"),
            "run",
        )
        return Action(argv)

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield the intervals that our hook reports."""
        yield from parse(lines)

    def session(self, lines: Iterable[bytes]) -> Mapping[str, str]:
        """Return what the load's first connection reported: TLS, client library, versions."""
        return parse_session(lines)

    def describe(self, target: Target) -> Sequence[Action]:  # noqa: ARG002 - the protocol's
        """Return commands that name sysbench's version and the libraries it would load."""
        path = shutil.which("sysbench") or "sysbench"
        return [Action((path, "--version")), Action(("ldd", path))]

    def _tables(self) -> tuple[str, ...]:
        if self.params.script == "bulk_insert":
            return ()
        return (f"--tables={self.params.tables}", f"--table-size={self.params.table_size}")

    def _chosen(self, names: frozenset[str]) -> protocol.Options:
        given = protocol.normal(self.params.options)
        return {name: value for name, value in given.items() if name in names}

    def _loads_rows(self) -> bool:
        # oltp_insert leaves its tables empty if it is to make the ids itself
        auto = protocol.normal(self.params.options).get("auto_inc", True)
        return self.params.script != "oltp_insert" or auto in {True, "on"}


def _check(place: str, params: OltpParams) -> None:
    if params.script not in sysbench.SCRIPTS:
        scripts = ", ".join(sysbench.SCRIPTS)
        raise SpecError(f"{place}.script = {params.script!r}: must be one of {scripts}")
    protocol.check_range(f"{place}.tables", params.tables, 1, 10_000)
    protocol.check_range(f"{place}.table_size", params.table_size, 1, 2**31 - 1)
    protocol.check_range(f"{place}.rate", params.rate, 0, 1_000_000)
    protocol.check_names(params.options, sysbench.known(params.script), f"{place}.options")
    if params.script.startswith("select_random_") and params.tables != 1:
        raise SpecError(f"{place}.tables = {params.tables}: {params.script} knows one table only")
    if params.script == "bulk_insert" and (params.tables, params.table_size) != (1, 10000):
        raise SpecError(f"{place}: bulk_insert makes one empty table for each thread; leave out "
                        "tables and table_size")  # fmt: skip
