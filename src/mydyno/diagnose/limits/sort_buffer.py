"""Large sort buffers are mapped and zeroed for each sort: the kernel works more than the server."""

from mydyno.diagnose.account import CPU, FAULT, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


def _system(evidence: LoadEvidence) -> float | None:
    used = evidence.total("process.cpu_user:mysqld", "process.cpu_system:mysqld")
    system = evidence.get("process.cpu_system:mysqld")
    return system / used if used and system is not None else None


def _faults(evidence: LoadEvidence) -> float | None:
    sorts = evidence.total("status.sort_scan", "status.sort_range")
    faults = evidence.get("process.minor_faults:mysqld")
    if sorts is None or faults is None:
        return None
    return faults / sorts if sorts else 0.0


LIMIT = Limit(
    "sort_buffer",
    "memory mapped for each sort",
    (CPU, FAULT),
    signs=(
        Sign("system share of the server's CPU", _system, 0.3, "ratio"),
        Sign("page faults of the server per sort", _faults, 1.0, ""),
        share(0.2, CPU, RUN_QUEUE, FAULT),
    ),
    doses=("mysqld.sort_buffer_size",),
)
