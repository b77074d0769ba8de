"""Statistics and decisions: pure functions from finished trials to verdicts."""

from mydyno.analyse.compare import compare, undecided
from mydyno.analyse.rule import FIRST, Rule
from mydyno.analyse.summary import BIN_S, summarise, tens, unit_of

__all__ = ["BIN_S", "FIRST", "Rule", "compare", "summarise", "tens", "undecided", "unit_of"]
