"""The database scripts that come with sysbench, run under our own Lua hook."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import msgspec

from mydyno.loads import protocol, sysbench
from mydyno.loads.protocol import Target, Workload, WorkloadInfo
from mydyno.loads.sysbench import METRICS, connection_file, sysbench_argv
from mydyno.model import Action, SpecError

_DATA_SEED = 1  # 0 would take the clock


class OltpParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "sysbench-oltp"``.

    `rate` is events per second, 0 for a closed loop; several are stepped, each a cell of its own:
    ``name/threads@rate``.  `options` are any further options of the script, of the random numbers
    and of the client, as ``sysbench SCRIPT help`` names them.
    """

    script: str
    threads: int | list[int] = 1
    tables: int = 1
    table_size: int = 10000
    rate: int | list[int] = 0
    options: dict[str, str | int | float | bool] = {}


def cells(name: str, params: OltpParams, response: str | None = None) -> Sequence[Workload]:
    """Return one workload for each thread count, called ``name/threads``.

    Raises `SpecError` naming the key for an unknown script, option or response, or a value out
    of range.
    """
    place = f"workloads.{name}"
    _check(place, params)
    protocol.check_response(place, response or "tps", METRICS)
    rates = _rates(place, params.rate)
    found: list[Workload] = []
    for n in protocol.thread_counts(place, params.threads):
        for rate, suffix in rates.items():
            info = WorkloadInfo(name, response or "tps", needs_server=True, closed_loop=rate == 0)
            at = f"{info.at(n).name}{suffix}"
            named = replace(info, name=at, data_key=_data_key(params, n))
            found.append(SysbenchOltp(named, msgspec.structs.replace(params, rate=rate), n))
    return found


def _rates(place: str, rate: int | list[int]) -> dict[int, str]:
    """Return what each rate adds to the name of its cell; raise `SpecError` for wrong ones."""
    rates = rate if isinstance(rate, list) else [rate]
    for one in rates:
        protocol.check_range(f"{place}.rate", one, int(len(rates) > 1), 1_000_000)
    if not rates or len(set(rates)) < len(rates):
        raise SpecError(f"{place}.rate = {rates}: give each rate once, and at least one")
    return {one: f"@{one}" if isinstance(rate, list) else "" for one in rates}


@dataclass(frozen=True, slots=True)
class SysbenchOltp(sysbench.Hooked):
    """One bundled script at one number of threads.

    Overhead of the hook: see docs/reference/workloads.md.  It runs where mydyno runs: the hook
    and the connection file are read from this machine's disk.
    """

    info: WorkloadInfo
    params: OltpParams
    threads: int

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that drop the tables, load them, and refresh their statistics."""
        cores = os.cpu_count() or 1
        loaders = min(self.params.tables, cores)
        config = f"--config-file={connection_file(target)}"
        options = self.params.options
        client = sysbench.chosen(options, sysbench.CLIENT)
        shaping = sysbench.SHAPE | sysbench.RANDOM | sysbench.CLIENT
        given = (*self._tables(), *sysbench.chosen(options, shaping))
        tool = sysbench_argv(target, {})
        if self.params.script == "bulk_insert":
            made = (*tool, "bulk_insert", config, f"--threads={self.threads}", *given)
            return [Action((*made, command)) for command in ("cleanup", "prepare")]
        script = (*tool, self.params.script, config, *given, f"--rand-seed={_DATA_SEED}")
        tables = f"--tables={self.params.tables}"
        return [
            Action((*script, "cleanup")),
            Action((*script, f"--threads={loaders}", "prepare")),
            Action((*tool, str(sysbench.LUA / "settle.lua"), config, tables, *client, "settle")),
        ]

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return an endless run that reports every second; `env` is the load tool's own."""
        hook = {"MYDYNO_SCRIPT": self.params.script}
        argv = (
            *sysbench_argv(target, dict(env) | hook),
            str(sysbench.LUA / "report.lua"),
            f"--config-file={connection_file(target)}",
            *self._tables(),
            *protocol.words(protocol.normal(self.params.options), "on", "off"),
            f"--threads={self.threads}",
            f"--rate={self.params.rate}",
            *sysbench.endless(seed, "rand-seed", verbosity=2),
        )
        return Action(argv)

    def _tables(self) -> tuple[str, ...]:
        if self.params.script == "bulk_insert":
            return ()
        return (f"--tables={self.params.tables}", f"--table-size={self.params.table_size}")


def _data_key(params: OltpParams, threads: int) -> str:
    """Return the tables' number, size and shape; the scripts but one share a schema."""
    if params.script == "bulk_insert":
        return f"sysbench/bulk_insert/{threads}"
    # oltp_insert leaves its tables empty if it is to make the ids itself
    auto = protocol.normal(params.options).get("auto_inc", True)
    empty = params.script == "oltp_insert" and auto not in {True, "on"}
    size = f"{params.tables}x{params.table_size}{'/empty' if empty else ''}"
    shape = sysbench.chosen(params.options, sysbench.SHAPE | sysbench.RANDOM)
    return "/".join(["sysbench/sbtest", size, *shape])


def _check(place: str, params: OltpParams) -> None:
    if params.script not in sysbench.SCRIPTS:
        scripts = ", ".join(sysbench.SCRIPTS)
        raise SpecError(f"{place}.script = {params.script!r}: must be one of {scripts}")
    protocol.check_range(f"{place}.tables", params.tables, 1, 10_000)
    protocol.check_range(f"{place}.table_size", params.table_size, 1, 2**31 - 1)
    protocol.check_names(params.options, sysbench.known(params.script), f"{place}.options")
    if params.script.startswith("select_random_") and params.tables != 1:
        raise SpecError(f"{place}.tables = {params.tables}: {params.script} knows one table only")
    if params.script == "bulk_insert" and (params.tables, params.table_size) != (1, 10000):
        raise SpecError(f"{place}: bulk_insert makes one empty table for each thread; leave out "
                        "tables and table_size")  # fmt: skip
