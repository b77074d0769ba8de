"""Threads wait for each other inside the server: latches, the commit's order."""

from mydyno.diagnose.account import LATCH, LOG
from mydyno.diagnose.suspects import Limit, figure, share

LIMIT = Limit(
    "latches",
    "latches and other locks of the server",
    (LATCH,),
    signs=(share(0.3, LATCH),),
    against=(
        share(0.03, LOG),
        figure("status.innodb_log_waits", 0.1, "/s"),
    ),
)
