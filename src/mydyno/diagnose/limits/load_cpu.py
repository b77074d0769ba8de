"""The load's CPUs: the client is slower than the server."""

from mydyno.diagnose.account import CPU, LOAD_CPU, LOAD_RUN_QUEUE, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _server(evidence: LoadEvidence) -> float | None:
    return evidence.share(CPU, RUN_QUEUE)


LIMIT = Limit(
    "load_cpu",
    "the load's CPUs",
    (LOAD_CPU,),
    signs=(share(0.3, LOAD_CPU, LOAD_RUN_QUEUE),),
    against=(Sign("connections on or waiting for a CPU of the server", _server, 0.5, "ratio"),),
    doses=("slow.host", "slow.load"),
)
