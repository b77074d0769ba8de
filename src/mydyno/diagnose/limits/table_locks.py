"""Statements wait for a table, its definition or a name: a pending DDL, an open transaction."""

from mydyno.diagnose.account import TABLE_LOCK
from mydyno.diagnose.suspects import Limit, share

LIMIT = Limit(
    "table_locks",
    "locks of tables and metadata",
    (TABLE_LOCK,),
    signs=(share(0.1, TABLE_LOCK),),
)
