"""Statistics and decisions: pure functions from finished trials to verdicts."""

from mydyno.stats.checks import mark_invalid
from mydyno.stats.compare import compare, undecided
from mydyno.stats.estimates import BIN_S, summarise, tens, unit_of
from mydyno.stats.rule import FIRST, Estimator, Goal, Method, Rule

__all__ = [
    "BIN_S",
    "FIRST",
    "Estimator",
    "Goal",
    "Method",
    "Rule",
    "compare",
    "mark_invalid",
    "summarise",
    "tens",
    "undecided",
    "unit_of",
]
