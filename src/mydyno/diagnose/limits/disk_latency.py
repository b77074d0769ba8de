"""The disk is slow, not full: each read takes long at a rate below any cap."""

from mydyno.diagnose.account import READ
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, quotient, share

LIMIT = Limit(
    "disk_latency",
    "the disk's read latency",
    (READ,),
    signs=(
        share(0.3, READ),
        quotient("mean time of a read", ("disk.read_s", "disk.reads"), 0.0005, "s"),
    ),
    against=(Sign("I/Os of the disk of their cap", LoadEvidence.ios_of_cap, 0.8, "ratio"),),
    doses=("disk.read_latency",),
)
