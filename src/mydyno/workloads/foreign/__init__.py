"""Logs that others made, found in any text and read as runs: pure functions of bytes."""

from mydyno.workloads.foreign.read import Log, read
from mydyno.workloads.foreign.reading import Doubt, Reading

__all__ = ["Doubt", "Log", "Reading", "read"]
