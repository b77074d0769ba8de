"""Adapters to load generators, one file per tool: a command out, its lines read as they come."""

from mydyno.workloads.protocol import (
    MayWait,
    Reports,
    Target,
    TellsSession,
    TellsTotals,
    Verifies,
    Workload,
)
from mydyno.workloads.tools import TOOLS, Tool

__all__ = [
    "TOOLS",
    "MayWait",
    "Reports",
    "Target",
    "TellsSession",
    "TellsTotals",
    "Tool",
    "Verifies",
    "Workload",
]
