"""Other programs take the host's CPUs: neither the server nor the load, nor what mydyno runs."""

from mydyno.diagnose.account import CPU, RUN_QUEUE, cpu_of_load
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _others(evidence: LoadEvidence) -> float | None:
    cpus, idle, steal = map(evidence.get, ("cpus", "cpu.idle:all", "cpu.steal:all"))
    if not cpus or idle is None or steal is None:
        return None
    # a CPU that waits for a disk is free, and one that handles interrupts works for the server, too
    idle += sum(evidence.get(f"cpu.{mode}:all") or 0.0 for mode in ("iowait", "irq", "softirq"))
    known = evidence.figures.means
    watched = [key for key in known if key.startswith("process.cpu_") and not key.endswith(":load")]
    return (cpus - idle - steal - sum(known[key] for key in watched) - cpu_of_load(known)) / cpus


LIMIT = Limit(
    "other_work",
    "other programs on the host's CPUs",
    (CPU,),
    signs=(
        Sign("CPU of other programs, of all CPUs", _others, 0.25, "ratio"),
        share(0.2, RUN_QUEUE),
    ),
    doses=("slow.host",),
)
