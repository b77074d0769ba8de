"""TPC-C under sysbench: our own scripts after the specification, with its consistency checks."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mydyno.loads import protocol, sysbench
from mydyno.loads.histogram import QUANTILE_NAMES
from mydyno.loads.protocol import Target, Workload, WorkloadInfo
from mydyno.loads.sysbench import (
    KIND_RATES,
    METRICS,
    connection_file,
    sysbench_argv,
)
from mydyno.model import Action, SpecError, of_kind

_PIECES = 3  # of a warehouse, which threads load by themselves
_TERMINALS = 10  # of a warehouse (clause 4.2.2)
_SHAPE = frozenset(
    {
        *("create_table_options", "foreign_keys", "history_key"),
        *("mysql_storage_engine", "repeated_text"),
    }
)
_KNOWN = _SHAPE | {"think_times"} | sysbench.CLIENT | sysbench.GENERAL
_SWITCHES = ("foreign_keys", "history_key", "repeated_text", "think_times")
_KIND_LATENCIES = tuple(of_kind(name, kind) for kind in KIND_RATES for name in QUANTILE_NAMES)


class TpccParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "sysbench-tpcc"``.

    `tables` independent sets of the nine tables hold `scale` warehouses each; after every trial
    `check` warehouses are held against the consistency conditions, 0 for none.
    """

    threads: int | list[int] = 1
    tables: int = 1
    scale: int = 1
    check: int = 2
    options: dict[str, str | int | float | bool] = {}


def cells(name: str, params: TpccParams, response: str | None = None) -> Sequence[Workload]:
    """Return one workload for each thread count, called ``name/threads``.

    Raises `SpecError` naming the key for an unknown option or response, or a value out of range.
    """
    place = f"workloads.{name}"
    counts = protocol.thread_counts(place, params.threads)
    _check(place, params, max(counts))
    metrics = (*METRICS, *KIND_RATES.values(), *_KIND_LATENCIES)
    protocol.check_response(place, response or "tps", metrics)
    size = f"{params.tables}x{params.scale}"
    data_key = "/".join(["sysbench/tpcc", size, *sysbench.chosen(params.options, _SHAPE)])
    info = WorkloadInfo(name, response or "tps", data_key, needs_server=True, closed_loop=True)
    return [SysbenchTpcc(info.at(n), params, n) for n in counts]


@dataclass(frozen=True, slots=True)
class SysbenchTpcc(sysbench.Hooked):
    """The five transactions at the standard mix, by one number of threads.

    Overhead: two readings of the clock, a logarithm and an increment for each transaction.  It
    runs where mydyno runs: its scripts and the connection file are read from this machine's disk.
    """

    info: WorkloadInfo
    params: TpccParams
    threads: int

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that drop the tables, load, index, and check what was loaded."""
        cores = os.cpu_count() or 1
        loaders = min(2 * cores, _PIECES * self._warehouses)
        threads = {"load": loaders, "finish": cores, "check": cores}
        steps = ("cleanup", "create", "load", "finish", "check")
        return [self._step(target, step, f"--threads={threads.get(step, 1)}") for step in steps]

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return an endless run that reports every second; `env` is the load tool's own."""
        argv = (
            *sysbench_argv(target, dict(env) | {"MYDYNO_SCRIPT": "tpcc"}),
            str(sysbench.LUA / "report.lua"),
            *self._given(target),
            *sysbench.chosen(self.params.options, {"think_times"} | sysbench.GENERAL),
            f"--threads={self.threads}",
            *sysbench.endless(seed, "seed", verbosity=2),
        )
        return Action(argv)

    def verify(self, target: Target, seed: int) -> Sequence[Action]:
        """Return the check of some warehouses, which `seed` draws; it fails naming a violation."""
        if not self.params.check:
            return ()
        first = f"--first-warehouse={seed % self._warehouses + 1}"
        some = (first, f"--warehouses={self.params.check}", f"--threads={os.cpu_count() or 1}")
        return [self._step(target, "check", *some)]

    @property
    def _warehouses(self) -> int:
        return self.params.tables * self.params.scale

    def _step(self, target: Target, step: str, *more: str) -> Action:
        shape = sysbench.chosen(self.params.options, _SHAPE)
        script = (*sysbench_argv(target, {}), str(sysbench.LUA / "tpcc.lua"))
        given = (*self._given(target), *shape, *more, "--verbosity=2")
        return Action((*script, *given, step))

    def _given(self, target: Target) -> tuple[str, ...]:
        return (
            f"--config-file={connection_file(target)}",
            f"--tables={self.params.tables}",
            f"--scale={self.params.scale}",
            *sysbench.chosen(self.params.options, sysbench.CLIENT),
        )


def _check(place: str, params: TpccParams, threads: int) -> None:
    protocol.check_range(f"{place}.tables", params.tables, 1, 10_000)
    protocol.check_range(f"{place}.scale", params.scale, 1, 100_000)
    protocol.check_range(f"{place}.check", params.check, 0, 1_000_000_000)
    protocol.check_names(params.options, _KNOWN, f"{place}.options")
    given = protocol.normal(params.options)
    for name in _SWITCHES:
        value = given.get(name, False)
        if not isinstance(value, bool) and value not in {"on", "off"}:
            raise SpecError(f"{place}.options.{name} = {value!r}: must be true or false")
    terminals = _TERMINALS * params.tables * params.scale
    if given.get("think_times") in {True, "on"} and threads > terminals:
        raise SpecError(
            f"{place}.threads = {threads}: with think_times each thread is a terminal, and there "
            f"are {terminals}, ten a warehouse; raise scale"
        )
