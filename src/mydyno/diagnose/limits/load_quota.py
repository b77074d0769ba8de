"""A control group's CPU quota holds the load back."""

from mydyno.diagnose.account import LOAD_CPU, LOAD_RUN_QUEUE
from mydyno.diagnose.suspects import Limit, LoadEvidence, Sign, figure, share


def _used(evidence: LoadEvidence) -> float | None:
    return evidence.ratio("cgroup.cpu:load", "cgroup.cpu_limit:load")


LIMIT = Limit(
    "load_quota",
    "the load's CPU quota",
    (LOAD_CPU,),
    signs=(
        figure("cgroup.throttled:load", 0.05, "s/s"),
        Sign("share of the quota used", _used, 0.8, "ratio"),
        share(0.1, LOAD_CPU, LOAD_RUN_QUEUE),
    ),
)
