"""Logs that others made, found in any text and read as runs: pure functions of bytes."""

from mydyno.workloads.foreign.parsed_run import Caveat, ParsedRun
from mydyno.workloads.foreign.read import ParsedLog, read

__all__ = ["Caveat", "ParsedLog", "ParsedRun", "read"]
