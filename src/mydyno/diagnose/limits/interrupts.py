"""One CPU handles the packets of all, while others are idle."""

from mydyno.diagnose.account import CLIENT, NETWORK
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, quotient, share

_TIMES = frozenset({"cpu.softirq", "cpu.irq"})


def _busiest(evidence: LoadEvidence) -> float | None:
    """Return the share of its time that the CPU which handles most interrupts spends on them."""
    used: dict[str, float] = {}
    for name, value in evidence.figures.means.items():
        start, _, cpu = name.partition(":")
        if start in _TIMES and cpu.isdigit():
            used[cpu] = used.get(cpu, 0.0) + value
    return max(used.values(), default=None)


LIMIT = Limit(
    "interrupts",
    "the CPU that handles the network's interrupts",
    (NETWORK, CLIENT),
    signs=(
        Sign("interrupts of one CPU", _busiest, 0.8, "ratio"),
        quotient("idle share of all CPUs", ("cpu.idle:all", "cpus"), 0.2),
        share(0.1, NETWORK, CLIENT),
    ),
)
