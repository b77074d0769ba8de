"""Statistics and decisions: pure functions from finished trials to verdicts."""

from mydyno.analyse.compare import Rule, compare
from mydyno.analyse.summary import summarise

__all__ = ["Rule", "compare", "summarise"]
