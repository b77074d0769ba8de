"""Adapters to load generators, one module per tool: build its command, parse its output."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mydyno.loads import (
    command,
    fio,
    imported_workload,
    mysqlslap,
    sysbench_fileio,
    sysbench_oltp,
    sysbench_tpcc,
)
from mydyno.loads.protocol import (
    MayWait,
    Reports,
    ReportsSession,
    ReportsTotals,
    Target,
    Verifies,
    Workload,
)

__all__ = [
    "TOOLS",
    "MayWait",
    "Reports",
    "ReportsSession",
    "ReportsTotals",
    "Target",
    "Tool",
    "Verifies",
    "Workload",
]


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's keys in ``[workloads.X]``, and the cells that those keys describe."""

    params: Any
    cells: Callable[[str, Any, str | None], Sequence[Workload]]


TOOLS: Mapping[str, Tool] = {
    "command": Tool(command.CommandParams, command.cells),
    "fio": Tool(fio.FioParams, fio.cells),
    "imported": Tool(imported_workload.ImportedParams, imported_workload.cells),
    "mysqlslap": Tool(mysqlslap.SlapParams, mysqlslap.cells),
    "sysbench-fileio": Tool(sysbench_fileio.FileioParams, sysbench_fileio.cells),
    "sysbench-oltp": Tool(sysbench_oltp.OltpParams, sysbench_oltp.cells),
    "sysbench-tpcc": Tool(sysbench_tpcc.TpccParams, sysbench_tpcc.cells),
}
