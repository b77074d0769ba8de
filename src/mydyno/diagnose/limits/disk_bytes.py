"""The disk's cap on bytes a second."""

from mydyno.diagnose.account import JOURNAL, LOG, READ, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share

LIMIT = Limit(
    "disk_bytes",
    "the disk's bytes per second",
    (READ, WRITE, LOG, JOURNAL),
    signs=(
        Sign("bytes of the disk of their cap", LoadEvidence.bytes_of_cap, 0.9, "ratio"),
        figure("disk.weighted_s", 1.0, "I/Os waiting"),
        share(0.2, READ, WRITE, LOG, JOURNAL),
    ),
    doses=("disk.rate",),
)
