"""The CPUs of the server: more work than they can do."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _idle(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("cpu.idle:all", "cpus")


def _queue(evidence: LoadEvidence) -> float | None:
    return evidence.share(RUN_QUEUE)


LIMIT = Limit(
    "server_cpu",
    "the server's CPUs",
    (CPU,),
    signs=(share(0.5, CPU, RUN_QUEUE),),
    against=(
        Sign("idle share of all CPUs", _idle, 0.3, "ratio"),
        Sign("connections waiting for a CPU", _queue, 0.02, "ratio", below=True),
    ),
    doses=("slow.host",),
)
