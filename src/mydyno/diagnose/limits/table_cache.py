"""Tables are opened again and again: the table cache is too small."""

from mydyno.diagnose.account import CPU, FAULT, LATCH
from mydyno.diagnose.suspects import Limit, quotient

LIMIT = Limit(
    "table_cache",
    "the table cache",
    (LATCH, CPU, FAULT),
    signs=(
        quotient("tables opened per query", ("status.opened_tables", "status.questions"), 0.05),
    ),
    doses=("mysqld.table_open_cache",),
)
