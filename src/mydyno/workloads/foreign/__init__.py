"""Parsers for existing benchmark logs in any text: pure functions of bytes."""

from mydyno.workloads.foreign.parsed_run import Caveat, ParsedRun
from mydyno.workloads.foreign.read import ParsedLog, read

__all__ = ["Caveat", "ParsedLog", "ParsedRun", "read"]
