"""Large sort buffers are mapped and zeroed for each sort: the kernel works more than the server."""

from mydyno.diagnose.account import CPU, FAULT, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share


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
        # the kernel's share of the CPU shows nothing: 0.33 with small buffers, 0.21 with large ones
        Sign("page faults of the server per sort", _faults, 1.0, ""),
        share(0.2, CPU, RUN_QUEUE, FAULT),
    ),
    doses=("mysqld.sort_buffer_size",),
)
