"""Burst credits are spent: the disk does its base rate, below its burst."""

from mydyno.diagnose.account import JOURNAL, LOG, READ, WRITE
from mydyno.diagnose.suspects import BURSTS, Limit, LoadEvidence, Sign, quotient, share

LIMIT = Limit(
    "disk_credits",
    "spent burst credits of the disk",
    (READ, WRITE, LOG, JOURNAL),
    signs=(
        Sign("I/Os of the disk of its base rate", LoadEvidence.ios_of_base, 0.9, "ratio"),
        Sign("the same", LoadEvidence.ios_of_base, BURSTS, "ratio", below=True),
        quotient("burst rate over base rate", ("disk.burst_ios", "disk.cap_ios"), 1.2),
        share(0.2, READ, WRITE, LOG, JOURNAL),
    ),
    doses=("disk.rate", "disk.credits"),
)
