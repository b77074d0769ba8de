"""The thread pool runs too few statements at once: others wait for it while CPUs are idle."""

from mydyno.diagnose.account import POOL
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _idle(evidence: LoadEvidence) -> float | None:
    """Return the share of all CPUs that have nothing to do, also while one waits for a disk."""
    idle, cpus = evidence.total("cpu.idle:all", "cpu.iowait:all"), evidence.get("cpus")
    return idle / cpus if idle is not None and cpus else None


LIMIT = Limit(
    "pool_threads",
    "the thread pool",
    (POOL,),
    signs=(
        share(0.3, POOL),
        Sign("idle share of all CPUs, that of waiting for a disk included", _idle, 0.2, "ratio"),
    ),
    against=(Sign("bytes of the link of its speed", LoadEvidence.link_used, 0.5, "ratio"),),
    doses=("mysqld.thread_pool_size",),
)
