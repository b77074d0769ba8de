"""A control group's CPU quota holds the load back."""

from mydyno.diagnose.account import LOAD_CPU, LOAD_RUN_QUEUE
from mydyno.diagnose.suspects import Limit, figure, quotient, share

LIMIT = Limit(
    "load_quota",
    "the load's CPU quota",
    (LOAD_CPU,),
    signs=(
        figure("cgroup.throttled:load", 0.05, "s/s"),
        quotient("share of the quota used", ("cgroup.cpu:load", "cgroup.cpu_limit:load"), 0.8),
        share(0.1, LOAD_CPU, LOAD_RUN_QUEUE),
    ),
)
