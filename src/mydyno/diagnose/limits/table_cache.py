"""Tables are opened again and again: the table cache is too small."""

from mydyno.diagnose.account import CPU, FAULT, LATCH
from mydyno.diagnose.suspects import Limit, costing, quotient

_COST = 4.0  # queries that an opening costs at most: MySQL 8.0 did four times as many without
_OPENED = quotient("tables opened per query", ("status.opened_tables", "status.questions"), 0.05)

LIMIT = Limit(
    "table_cache",
    "the table cache",
    (LATCH, CPU, FAULT),
    signs=(_OPENED,),
    doses=("mysqld.table_open_cache",),
    most=costing(_COST, _OPENED.value),
)
