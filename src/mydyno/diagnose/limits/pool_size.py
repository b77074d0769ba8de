"""The buffer pool misses: pages are read that a larger one would hold."""

from mydyno.diagnose.account import READ
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, quotient, share


def _cold(evidence: LoadEvidence) -> float | None:
    """Return by how much the reads fall: a pool that is still filling."""
    rise = evidence.figures.rise.get("status.innodb_pages_read")
    return None if rise is None else -rise


LIMIT = Limit(
    "pool_size",
    "the size of the buffer pool, as page reads wait for the disk",
    (READ,),
    signs=(
        share(0.3, READ),
        figure("status.innodb_pages_read", 10.0, "/s"),
        quotient(
            "reads of the disk that are pages of InnoDB",
            ("status.innodb_pages_read", "disk.reads"),
            0.7,
        ),
    ),
    against=(Sign("fall of the page reads within the window", _cold, 0.3, "ratio"),),
    doses=("mysqld.innodb_buffer_pool_size",),
)
