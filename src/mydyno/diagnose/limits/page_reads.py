"""Pages are read within microseconds, and the CPU time that their reads cost is the limit."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, share

_READ_S = 30e-6  # of a CPU: the call, the checksum, a place in the pool; measured with both full


def _cost(evidence: LoadEvidence) -> float | None:
    used = evidence.total("process.cpu_user:mysqld", "process.cpu_system:mysqld")
    pages = evidence.get("status.innodb_pages_read")
    if used is None or pages is None:
        return None
    return pages * _READ_S / used if used else 0.0


LIMIT = Limit(
    "page_reads",
    "CPU time of reads that a larger buffer pool would save",
    (CPU,),
    signs=(
        Sign("CPU time of page reads of the server's", _cost, 0.2, "ratio"),
        share(0.5, CPU, RUN_QUEUE),
    ),
    doses=("mysqld.innodb_buffer_pool_size",),
)
