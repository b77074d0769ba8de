"""Adapters to load generators, one file per tool: a command out, its lines read as they come."""

from mydyno.workloads.protocol import Load, Target, Workload

__all__ = ["Load", "Target", "Workload"]
