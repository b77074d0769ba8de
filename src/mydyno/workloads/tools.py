"""The load generators mydyno knows, by the name a spec gives them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mydyno.workloads import (
    command,
    fio,
    imported_workload,
    mysqlslap,
    sysbench_fileio,
    sysbench_oltp,
    sysbench_tpcc,
)
from mydyno.workloads.protocol import Workload


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool's keys in ``[workloads.X]``, and the cells that those keys describe."""

    params: Any
    cells: Callable[[str, Any, str | None], Sequence[Workload]]


TOOLS: Mapping[str, Tool] = {
    "command": Tool(command.Params, command.cells),
    "fio": Tool(fio.Params, fio.cells),
    "imported": Tool(imported_workload.Params, imported_workload.cells),
    "mysqlslap": Tool(mysqlslap.Params, mysqlslap.cells),
    "sysbench-fileio": Tool(sysbench_fileio.Params, sysbench_fileio.cells),
    "sysbench-oltp": Tool(sysbench_oltp.Params, sysbench_oltp.cells),
    "sysbench-tpcc": Tool(sysbench_tpcc.Params, sysbench_tpcc.cells),
}
