"""Adapters to load generators, one file per tool: a command out, its lines read as they come."""

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
