"""What each treatment lost in the power cuts of a crash test."""

import statistics
from collections.abc import Collection, Mapping, Sequence

import msgspec

from mydyno.model import Outcome, TrialStatus


class Loss(msgspec.Struct, frozen=True):
    """What a treatment lost in its cuts: how many of `cuts` lost a commit, and the most commits.

    `lossy_low` and `lossy_high` are a 95 % interval of the share of cuts that lose any.  `inside`
    cuts came in a write of a data page, before which the log was flushed; `lossy_at_random` counts
    those of the others that lost a commit.  `binlog`
    counts cuts after which the binary log lacked a commit (None: it has none), `unlogged` those
    after which it lacked a row that InnoDB has, `corrupt` those after which data were damaged,
    `repaired` those after which the doublewrite buffer mended torn pages.
    """

    treatment: str
    durability: str
    cuts: int
    lossy: int
    lossy_at_random: int
    lossy_low: float
    lossy_high: float
    commits_lost: float
    most_lost: int
    binlog: int | None
    unlogged: int | None
    corrupt: int
    repaired: int
    inside: int
    recovery_s: float
    failed: int
    example: str = ""


def losses(
    history: Sequence[Outcome], treatments: Collection[str], durability: Mapping[str, str]
) -> list[Loss]:
    """Return what each treatment lost, in their order; `durability` is same unless it is named."""
    tried = {o.trial.treatment for o in history}
    names = [name for name in treatments if name in tried]
    return [
        _loss(name, [o for o in history if o.trial.treatment == name], durability.get(name, "same"))
        for name in names
    ]


def _loss(name: str, trials: Sequence[Outcome], durability: str) -> Loss:
    measured = [o for o in trials if o.status is TrialStatus.OK]
    found = [{m.name: m.value for m in o.metrics} for o in measured]
    lost = [int(one["commits_lost"]) for one in found]
    lossy, cuts = sum(n > 0 for n in lost), len(found)
    low, high = _share(lossy, cuts)
    logged = [one for one in found if "binlog_lost" in one]
    errors = [o.error for o in trials if o.error]
    return Loss(
        treatment=name,
        durability=durability,
        cuts=cuts,
        lossy=lossy,
        lossy_at_random=sum(one["commits_lost"] > 0 for one in found if not one["inside_a_page"]),
        lossy_low=low,
        lossy_high=high,
        commits_lost=float(statistics.median(lost)) if lost else 0.0,
        most_lost=max(lost, default=0),
        binlog=sum(one["binlog_lost"] > 0 for one in logged) if logged else None,
        unlogged=sum(one["unlogged"] > 0 for one in logged) if logged else None,
        corrupt=sum(one["corrupt"] > 0 for one in found),
        repaired=sum(one["pages_repaired"] > 0 for one in found),
        inside=sum(one["inside_a_page"] > 0 for one in found),
        recovery_s=statistics.median(one["recovery_s"] for one in found) if found else 0.0,
        failed=len(trials) - cuts,
        example=errors[0] if errors else "",
    )


def _share(lossy: int, cuts: int) -> tuple[float, float]:
    from scipy.stats import binomtest  # noqa: PLC0415 - import takes half a second

    if not cuts:
        return 0.0, 1.0
    found = binomtest(lossy, cuts).proportion_ci(method="wilson")
    return float(found.low), float(found.high)
