"""Memory is allocated on other NUMA nodes than the CPUs that ask for it."""

from mydyno.diagnose.account import CPU, RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, costing, quotient, share

_COST = 0.5  # of the CPU time, where all memory is remote: a judgement
_REMOTE = quotient(
    "share of pages allocated on another NUMA node",
    ("vm.numa_other", "vm.numa_local", "vm.numa_other"),
    0.2,
)


def _setting(evidence: LoadEvidence) -> tuple[str, ...]:
    """Return the setting that spreads memory; MariaDB, which alone has Aria, has none."""
    known = evidence.get("status.aria_pagecache_read_requests") is not None
    return () if known else ("mysqld.innodb_numa_interleave",)


LIMIT = Limit(
    "numa",
    "memory of other NUMA nodes",
    (CPU,),
    signs=(_REMOTE, share(0.3, CPU, RUN_QUEUE)),
    doses=_setting,
    most=costing(_COST, _REMOTE.value),
)
