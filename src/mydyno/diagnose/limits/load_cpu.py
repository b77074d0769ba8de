"""The load's CPUs: the client is slower than the server."""

from mydyno.diagnose.account import CPU, LOAD_CPU, LOAD_RUN_QUEUE, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, share

LIMIT = Limit(
    "load_cpu",
    "the load's CPUs",
    (LOAD_CPU,),
    signs=(share(0.3, LOAD_CPU, LOAD_RUN_QUEUE),),
    against=(share(0.5, CPU, RUN_QUEUE),),
    doses=("slow.host", "slow.load"),
)
