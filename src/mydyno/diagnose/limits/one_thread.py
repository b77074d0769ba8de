"""One thread of the server that is always busy, while CPUs are idle."""

from mydyno.diagnose.account import APART, CPU, LATCH, LOG, OWN, YOUNG
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, quotient


def _busiest(evidence: LoadEvidence) -> float | None:
    """Return the cores that one thread uses or waits for, of the class where that is most.

    The busiest of several connections is no thread that others wait for; they are of any class
    where the server does not list them, or shares threads between them.  Samples of earlier
    versions have the mean of a class alone.
    """
    means, apart = evidence.figures.means, not {"shared", "pool"} & {*evidence.account.doubts}
    found = [
        means.get(f"state.busiest:{of}", (cpu + means.get(f"state.run_delay:{of}", 0.0)) / threads)
        for key, threads in means.items()
        if key.startswith("state.threads:mysqld/") and threads > 0
        for of in [key.partition(":")[2]]
        if threads <= 1 or (apart and of not in {OWN, YOUNG, APART})
        if (cpu := evidence.get(f"state.cpu:{of}")) is not None
    ]
    return max(found, default=None)


LIMIT = Limit(
    "one_thread",
    "one thread of the server",
    (CPU, LATCH, LOG),
    signs=(
        Sign("CPU of the busiest thread of the server", _busiest, 0.9, "cores"),
        quotient("idle share of all CPUs", ("cpu.idle:all", "cpus"), 0.2),
    ),
    doses=("slow.host", "slow.server"),
)
