"""The CPUs of the server: more work than they can do."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, quotient, share

LIMIT = Limit(
    "server_cpu",
    "the server's CPUs",
    (CPU,),
    signs=(share(0.5, CPU, RUN_QUEUE),),
    against=(
        quotient("idle share of all CPUs", ("cpu.idle:all", "cpus"), 0.3),
        share(0.02, RUN_QUEUE, below=True),
    ),
    doses=("slow.host", "slow.server"),
)
