"""The CPUs of the server: more work than they can do."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, quotient, share


def _queue(evidence: LoadEvidence) -> float | None:
    return evidence.share(RUN_QUEUE)


LIMIT = Limit(
    "server_cpu",
    "the server's CPUs",
    (CPU,),
    signs=(share(0.5, CPU, RUN_QUEUE),),
    against=(
        quotient("idle share of all CPUs", ("cpu.idle:all", "cpus"), 0.3),
        Sign("connections waiting for a CPU", _queue, 0.02, "ratio", below=True),
    ),
    doses=("slow.host", "slow.server"),
)
