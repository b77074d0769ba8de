"""Invalid (void) trials: disturbed by something else than their treatment, left out of verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from mydyno.model import Outcome, TrialStatus
from mydyno.stats.estimates import ended, metric_of
from mydyno.stats.rule import Rule

# By gauge of the measured window: excess over the usual that makes a trial invalid, and message.
_GAUGES: Mapping[str, tuple[float, str]] = {
    "cpu_steal_ratio": (0.05, "CPU steal was {:.0%}"),
    "cpu_other_cores": (0.25, "other programs used {:.1f} cores"),
}
_FEWEST = 3  # trials of a treatment for a usual value
_LEAST_S = 10.0  # of a window: in a shorter one, a starting program looks like load
_LIMIT = 0.9  # of its processors, from which on the load program may be the limit


def mark_invalid(outcomes: Sequence[Outcome], rule: Rule) -> list[Outcome]:
    """Return the outcomes, with status VOID for those that something else disturbed.

    Other load, neighbours or a state of the disk that are always there make no trial invalid: they
    belong to the host.  A trial without work is an outcome of its treatment
    (`mydyno.stats.estimates`), never void.
    """
    outcomes = ended(outcomes, rule.responses, rule.lower)
    busy = _busy(outcomes)
    left = [_void(o, busy) for o in outcomes]
    states = _states(left, rule)
    return [_void(o, states) for o in left]


def _void(outcome: Outcome, why: Mapping[int, str]) -> Outcome:
    if outcome.trial.id not in why or outcome.status is not TrialStatus.OK:
        return outcome
    return replace(outcome, status=TrialStatus.VOID, error=why[outcome.trial.id])


def _busy(outcomes: Sequence[Outcome]) -> dict[int, str]:
    """Return, by trial id, the trials in whose windows other load was higher than usual.

    The usual value is that of trials of the same treatment, since the work of the kernel and of a
    lab disk depends on the load.
    """
    alike: dict[tuple[str, str], list[Outcome]] = {}
    for o in outcomes:
        if o.status is TrialStatus.OK and o.window.end_s - o.window.start_s >= _LEAST_S:
            alike.setdefault((o.trial.treatment, o.trial.workload), []).append(o)
    found: dict[int, str] = {}
    for name, (excess, message) in _GAUGES.items():
        for some in alike.values():
            values = {o.trial.id: v for o in some if (v := _gauge(o, name)) is not None}
            if len(values) < _FEWEST:
                continue
            usual = median(values.values())
            found |= {
                trial: f"{message.format(value)}; usual here: {message.format(usual)}"
                for trial, value in values.items()
                if value > usual + excess
            }
    return found


def _states(outcomes: Sequence[Outcome], rule: Rule) -> dict[int, str]:
    from mydyno.stats.sequential import load_series  # noqa: PLC0415 - numpy and scipy
    from mydyno.stats.states import of_another_state  # noqa: PLC0415

    found: dict[int, str] = {}
    for workload, response in rule.responses.items():
        found |= of_another_state(load_series(outcomes, workload, response, rule.lower))
    return found


def load_limit(outcomes: Sequence[Outcome], workload: str) -> str:
    """Return a warning if the load program may have been the limit, else ``""``."""
    shares = [
        share
        for o in outcomes
        if o.trial.workload == workload and (share := _gauge(o, "load_cpu_ratio")) is not None
    ]
    if not shares or median(shares) < _LIMIT:
        return ""
    return (
        f"{workload}: the load program used {median(shares):.0%} of its processors, so it may "
        "be the limit instead of the server; give it more threads or a host of its own"
    )


def _gauge(outcome: Outcome, name: str) -> float | None:
    return metric_of(outcome, name)
