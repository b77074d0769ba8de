"""Adapters to load generators, one module per tool: build its command, parse its output."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from mydyno.loads import (
    command,
    fio,
    imported_workload,
    ledger,
    mysqlslap,
    sysbench_fileio,
    sysbench_oltp,
    sysbench_tpcc,
)
from mydyno.loads.protocol import (
    Checkable,
    Reports,
    ReportsSession,
    ReportsTotals,
    Target,
    Verifies,
    Workload,
    WorkloadInfo,
)
from mydyno.model.plugins import with_plugins

__all__ = [
    "Checkable",
    "Reports",
    "ReportsSession",
    "ReportsTotals",
    "Target",
    "Tool",
    "Verifies",
    "Workload",
    "WorkloadInfo",
    "tools",
]


@dataclass(frozen=True, slots=True)
class Tool:
    """What a load generator declares: its keys in ``[workloads.X]``, and the cells they describe.

    `program` is the command that must be on the load's host, unless the spec names another.
    """

    params: Any
    cells: Callable[[str, Any, str | None], Sequence[Workload]]
    program: str = ""


@cache
def tools() -> Mapping[str, Tool]:
    """Return every load generator by its name in a spec: ours and those of plug-ins.

    Raises `SpecError` for a plug-in that cannot be used.
    """
    own = {
        "command": Tool(command.CommandParams, command.cells),
        "fio": Tool(fio.FioParams, fio.cells, "fio"),
        "imported": Tool(imported_workload.ImportedParams, imported_workload.cells),
        "ledger": Tool(ledger.LedgerParams, ledger.cells, "sysbench"),
        "mysqlslap": Tool(mysqlslap.SlapParams, mysqlslap.cells, "mysqlslap"),
        "sysbench-fileio": Tool(sysbench_fileio.FileioParams, sysbench_fileio.cells, "sysbench"),
        "sysbench-oltp": Tool(sysbench_oltp.OltpParams, sysbench_oltp.cells, "sysbench"),
        "sysbench-tpcc": Tool(sysbench_tpcc.TpccParams, sysbench_tpcc.cells, "sysbench"),
    }
    return with_plugins("mydyno.workloads", Tool, own)
