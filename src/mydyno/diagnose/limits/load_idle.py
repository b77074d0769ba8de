"""The load asks for no more: it pauses, keeps a rate, or has few threads."""

from mydyno.diagnose.account import THINK
from mydyno.diagnose.suspects import IDLE, Limit, share

LIMIT = Limit(
    IDLE,
    "the load asks for no more",
    (THINK,),
    signs=(share(0.3, THINK),),
)
