"""Transactions wait for rows that others have locked."""

from mydyno.diagnose.account import ROW_LOCK
from mydyno.diagnose.suspects import Limit, share

LIMIT = Limit(
    "row_locks",
    "row locks",
    (ROW_LOCK,),
    signs=(share(0.2, ROW_LOCK),),
)
