"""The kernel compacts memory for huge pages while queries wait."""

from mydyno.diagnose.account import CPU, FAULT
from mydyno.diagnose.suspects import Limit, figure

LIMIT = Limit(
    "compaction",
    "compaction for huge pages",
    (FAULT, CPU),
    signs=(figure("vm.compact_stall", 10.0, "/s"),),
)
