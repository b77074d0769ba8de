"""A control group's CPU quota withholds CPUs that the host has."""

from mydyno.diagnose.account import CPU
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure


def _used(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("cgroup.cpu:mysqld", "cgroup.cpu_limit:mysqld")


LIMIT = Limit(
    "cpu_quota",
    "the server's CPU quota",
    (CPU,),
    signs=(
        figure("cgroup.throttled:mysqld", 0.05, "s/s"),
        Sign("share of the quota used", _used, 0.8, "ratio"),
    ),
)
