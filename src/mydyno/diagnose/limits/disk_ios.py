"""The disk's cap on I/Os a second; where it is not known, only a dose could show it.

A rate that stays flat under a queue shows no cap: that of a slow disk does, too.
"""

from mydyno.diagnose.account import JOURNAL, LOG, READ, WRITE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share

LIMIT = Limit(
    "disk_ios",
    "the disk's I/Os per second",
    (READ, WRITE, LOG, JOURNAL),
    signs=(
        Sign("I/Os of the disk of their cap", LoadEvidence.ios_of_cap, 0.9, "ratio"),
        figure("disk.weighted_s", 2.0, "I/Os waiting"),
        share(0.2, READ, WRITE, LOG, JOURNAL),
    ),
    against=(Sign("bytes of the disk of their cap", LoadEvidence.bytes_of_cap, 0.9, "ratio"),),
    doses=("disk.rate",),
)
