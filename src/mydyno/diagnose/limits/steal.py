"""The hypervisor gives the CPUs of this machine to others."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _stolen(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("cpu.steal:all", "cpus")


LIMIT = Limit(
    "steal",
    "CPU time stolen by the hypervisor",
    (CPU,),
    signs=(
        Sign("stolen share of all CPUs", _stolen, 0.05, "ratio"),
        share(0.1, CPU, RUN_QUEUE),
    ),
)
