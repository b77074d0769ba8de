"""Large sort buffers are mapped and zeroed for each sort: the kernel works more than the server."""

from mydyno.diagnose.account import CPU, FAULT, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, figure, quotient, share, summed

LIMIT = Limit(
    "sort_buffer",
    "memory mapped for each sort",
    (CPU, FAULT),
    signs=(
        summed("sorts", ("status.sort_scan", "status.sort_range"), 1.0, "/s"),
        # the kernel's share of the CPU shows nothing: 0.33 with small buffers, 0.21 with large ones
        quotient(
            "page faults of the server per sort",
            ("process.minor_faults:mysqld", "status.sort_scan", "status.sort_range"),
            1.0,
            "",
        ),
        figure("process.minor_faults:mysqld", 2000.0, "/s"),  # seen: 17,000, and 174 at rest
        share(0.2, CPU, RUN_QUEUE, FAULT),
    ),
    doses=("mysqld.sort_buffer_size",),
)
