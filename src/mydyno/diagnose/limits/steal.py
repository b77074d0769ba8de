"""The hypervisor gives the CPUs of this machine to others."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, quotient, share

LIMIT = Limit(
    "steal",
    "CPU time stolen by the hypervisor",
    (CPU,),
    signs=(
        quotient("stolen share of all CPUs", ("cpu.steal:all", "cpus"), 0.05),
        share(0.1, CPU, RUN_QUEUE),
    ),
    most=lambda evidence: evidence.ratio("cpu.steal:all", "cpus"),
)
