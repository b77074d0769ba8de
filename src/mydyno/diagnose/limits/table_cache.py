"""Tables are opened again and again: the table cache is too small."""

from mydyno.diagnose.account import CPU, FAULT, LATCH
from mydyno.diagnose.suspects import Limit, figure

LIMIT = Limit(
    "table_cache",
    "the table cache",
    (LATCH, CPU, FAULT),
    signs=(figure("status.opened_tables", 10.0, "/s"),),
    doses=("mysqld.table_open_cache",),
)
