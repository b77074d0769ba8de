"""Trials that something else spoiled: they are named and left out of every verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import median

from mydyno.analyse.ends import ended
from mydyno.analyse.estimates import metric_of
from mydyno.analyse.rule import Rule
from mydyno.model import Outcome, Status

# By gauge of the measured window: how far above the usual it spoils a trial, and why.
_GAUGES: Mapping[str, tuple[float, str]] = {
    "cpu_steal_ratio": (0.05, "the host gave {:.0%} of its processors to other guests"),
    "cpu_other_cores": (0.25, "other programs kept {:.1f} cores busy"),
}
_FEWEST = 3  # trials of a treatment that show what is usual
_LEAST_S = 10.0  # of a window: in less, a program that starts looks like a load
_LIMIT = 0.9  # of its processors, from where on a load may be what is measured


def mark_invalid(outcomes: Sequence[Outcome], rule: Rule) -> list[Outcome]:
    """Return the outcomes, those void that something else than their treatment decided.

    A load, a neighbour or a state of the disk that is always there spoils nothing: it is the host.
    A trial without work is an outcome of its treatment (`mydyno.analyse.ends`), never void.
    """
    outcomes = ended(outcomes, rule.responses, rule.lower)
    busy = _busy(outcomes)
    left = [_void(o, busy) for o in outcomes]
    states = _states(left, rule)
    return [_void(o, states) for o in left]


def _void(outcome: Outcome, why: Mapping[int, str]) -> Outcome:
    if outcome.trial.id not in why or outcome.status is not Status.OK:
        return outcome
    return replace(outcome, status=Status.VOID, error=why[outcome.trial.id])


def _busy(outcomes: Sequence[Outcome]) -> dict[int, str]:
    """Return the trials in whose windows the host had more else to do than usual.

    That is beside trials of the same treatment: the kernel's and a lab disk's own work goes with
    what the load does.
    """
    alike: dict[tuple[str, str], list[Outcome]] = {}
    for o in outcomes:
        if o.status is Status.OK and o.window.end_s - o.window.start_s >= _LEAST_S:
            alike.setdefault((o.trial.treatment, o.trial.workload), []).append(o)
    found: dict[int, str] = {}
    for name, (more, told) in _GAUGES.items():
        for some in alike.values():
            values = {o.trial.id: v for o in some if (v := _gauge(o, name)) is not None}
            if len(values) < _FEWEST:
                continue
            usual = median(values.values())
            found |= {
                trial: f"{told.format(value)}; usual here: {told.format(usual)}"
                for trial, value in values.items()
                if value > usual + more
            }
    return found


def _states(outcomes: Sequence[Outcome], rule: Rule) -> dict[int, str]:
    from mydyno.analyse.sequential import load_series  # noqa: PLC0415 - numpy and scipy
    from mydyno.analyse.states import of_another_state  # noqa: PLC0415

    found: dict[int, str] = {}
    for workload, response in rule.responses.items():
        found |= of_another_state(load_series(outcomes, workload, response, rule.lower))
    return found


def load_limit(outcomes: Sequence[Outcome], workload: str) -> str:
    """Return a warning where the load itself may have been the limit, or ``""``."""
    shares = [
        share
        for o in outcomes
        if o.trial.workload == workload and (share := _gauge(o, "load_cpu_ratio")) is not None
    ]
    if not shares or median(shares) < _LIMIT:
        return ""
    return (
        f"{workload}: the load kept {median(shares):.0%} of the processors it can use busy: it may "
        "be the limit, and not what is compared; give it more threads, or a host of its own"
    )


def _gauge(outcome: Outcome, name: str) -> float | None:
    return metric_of(outcome, name)
