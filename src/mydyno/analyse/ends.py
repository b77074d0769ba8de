"""How trials ended: failed, stalled and unreadable trials are outcomes and are always counted."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from math import isfinite

from mydyno.analyse.direction import THROUGHPUTS, always_works
from mydyno.analyse.estimates import metric_of
from mydyno.analyse.result import Ends
from mydyno.model import Outcome, Status

_LOST = {
    Status.FAILED: "failed in",
    Status.STALLED: "stalled in",
    Status.UNKNOWN: "gave no result in",
}


def ended(
    outcomes: Sequence[Outcome], responses: Mapping[str, str], lower: Collection[str] = ()
) -> list[Outcome]:
    """Return the outcomes, with status STALLED for those whose load did no work in its window.

    `responses` are by workload; `lower` names the metrics that the spec declares better if lower.
    Trials without a finite value of the response are UNKNOWN.  A response that may be 0 in a good
    trial, such as `errors`, is not changed.
    """
    return [_ended(o, responses.get(o.trial.workload), lower) for o in outcomes]


def _ended(outcome: Outcome, response: str | None, lower: Collection[str]) -> Outcome:
    if outcome.status is not Status.OK or response is None:
        return outcome
    value = metric_of(outcome, response)
    if value is None or not isfinite(value):
        shown = "no value" if value is None else f"{value:g}, not a finite number"
        return replace(
            outcome, status=Status.UNKNOWN, error=f"{response}: {shown} in the measured window"
        )
    for name in dict.fromkeys((response, *THROUGHPUTS)):
        work = metric_of(outcome, name)
        if work is not None and work <= 0 and always_works(name, lower):
            return replace(
                outcome, status=Status.STALLED, error=f"{name}: {work:g} in the measured window"
            )
    return outcome


def ends_of(outcomes: Sequence[Outcome]) -> Ends:
    """Return how trials ended; void (invalid) trials are not counted."""
    counts = {status: sum(o.status is status for o in outcomes) for status in Status}
    return Ends(
        trials=len(outcomes) - counts[Status.VOID],
        failed=counts[Status.FAILED],
        stalled=counts[Status.STALLED],
        unknown=counts[Status.UNKNOWN],
    )


def zeros(outcomes: Sequence[Outcome], response: str) -> int:
    """Return the number of good trials whose response is 0, so that there is no ratio.

    For most responses this is 0: such trials have stalled (`ended`).
    """
    good = [o for o in outcomes if o.status is Status.OK]
    return sum(v is not None and v <= 0 for v in (metric_of(o, response) for o in good))


def share_lost(ends: Ends) -> float:
    """Return the share of trials that were not measured, 0 without trials."""
    return ends.lost / ends.trials if ends.trials else 0.0


def describe_lost(ends: Ends) -> str:
    """Return the counts in words: ``failed in 4 and stalled in 2 of 8 trials``."""
    counts = (ends.failed, ends.stalled, ends.unknown)
    parts = [f"{word} {n}" for word, n in zip(_LOST.values(), counts, strict=True) if n]
    return f"{' and '.join(parts)} of {_trials(ends.trials)}"


def describe_lost_vs_baseline(own: Ends, baseline: Ends) -> str:
    """Return the counts of a treatment and of the baseline in words."""
    return f"{describe_lost(own)}, the baseline in {baseline.lost} of {baseline.trials}"


def _trials(count: int) -> str:
    return "1 trial" if count == 1 else f"{count} trials"
