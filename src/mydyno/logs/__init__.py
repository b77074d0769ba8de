"""Parsers for existing benchmark logs in any text: pure functions of bytes."""

from mydyno.logs.read import ParsedLog, read
from mydyno.logs.text import Caveat, ParsedRun

__all__ = ["Caveat", "ParsedLog", "ParsedRun", "read"]
