"""Adapters to load generators, one module per tool: build its command, parse its output."""

from mydyno.workloads.protocol import (
    MayWait,
    Reports,
    ReportsSession,
    ReportsTotals,
    Target,
    Verifies,
    Workload,
)
from mydyno.workloads.tools import TOOLS, Tool

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
