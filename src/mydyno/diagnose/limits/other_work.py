"""Other programs take the host's CPUs: neither the server nor the load, nor what mydyno runs."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share

_SPENT = ("process.cpu_user:", "process.cpu_system:")  # of each process that is watched
_LOAD = "state.cpu:load/"  # of each class of its threads


def _others(evidence: LoadEvidence) -> float | None:
    cpus, idle, steal = map(evidence.get, ("cpus", "cpu.idle:all", "cpu.steal:all"))
    if not cpus or idle is None or steal is None:
        return None
    known = evidence.figures.means
    watched = [key for key in known if key.startswith(_SPENT) and not key.endswith(":load")]
    watched += [key for key in known if key.startswith(_LOAD)]
    ours = sum(evidence.get(key) or 0.0 for key in watched)
    return (cpus - idle - steal - ours) / cpus


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
