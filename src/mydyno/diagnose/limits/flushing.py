"""The buffer pool has no clean page: queries wait for pages to be written.

At the disk's cap they wait for the disk: more flushing would not give a page sooner.
"""

from mydyno.diagnose.account import LATCH, READ, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share


def _of_cap(evidence: LoadEvidence) -> float:
    return evidence.ios_of_cap() or 0.0


LIMIT = Limit(
    "flushing",
    "flushing of dirty pages",
    (WRITE, LATCH, READ),
    signs=(
        figure("status.innodb_buffer_pool_wait_free", 1.0, "/s"),
        share(0.1, WRITE, LATCH, READ),
        Sign("I/Os of the disk of its cap", _of_cap, 0.9, "ratio", below=True),
    ),
    doses=("mysqld.innodb_io_capacity",),
)
