"""A control group's CPU quota holds the load back.

Requests that the load has sent before its quota is spent queue for the server's CPUs.
"""

from mydyno.diagnose.account import CPU, LOAD_CPU, LOAD_RUN_QUEUE
from mydyno.diagnose.suspects import Limit, figure, quotient, share

LIMIT = Limit(
    "load_quota",
    "the load's CPU quota",
    (LOAD_CPU, CPU),
    signs=(
        figure("cgroup.throttled:load", 0.05, "s/s"),
        quotient("share of the quota used", ("cgroup.cpu:load", "cgroup.cpu_limit:load"), 0.9),
        share(0.1, LOAD_CPU, LOAD_RUN_QUEUE),
    ),
)
