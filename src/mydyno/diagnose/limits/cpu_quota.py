"""A control group's CPU quota withholds CPUs that the host has."""

from mydyno.diagnose.account import CPU
from mydyno.diagnose.suspects import Limit, figure, quotient

LIMIT = Limit(
    "cpu_quota",
    "the server's CPU quota",
    (CPU,),
    signs=(
        figure("cgroup.throttled:mysqld", 0.05, "s/s"),
        quotient("share of the quota used", ("cgroup.cpu:mysqld", "cgroup.cpu_limit:mysqld"), 0.8),
    ),
    doses=("cgroup.cpu",),
)
