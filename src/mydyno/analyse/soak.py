"""The soak: whether the winner holds its throughput in a long trial."""

from collections.abc import Sequence
from math import sqrt

from mydyno.analyse.logs import change as change_of
from mydyno.analyse.logs import ratio
from mydyno.analyse.rule import Rule
from mydyno.model import Outcome, Status

_QUARTERS = 4
_FEWEST = 24  # bins: with fewer, quarters are too short
_SURE = 2.8  # standard errors: Student's t for four degrees of freedom
_BATCHES = 3  # of a quarter, whose means are taken for independent


def soaked(outcomes: Sequence[Outcome], rule: Rule) -> str:
    """Return in a sentence whether the winner's soak held its throughput, ``""`` without one.

    The last quarter is compared with the second; the first is still part of the warm-up.  The
    error of the difference is by batch means (Law and Kelton, 2000, chapter 9.5).
    """
    trial = next((o for o in outcomes if o.trial.soak), None)
    if trial is None:
        return ""
    name = trial.trial.treatment
    if trial.status is not Status.OK:
        return f"The soak of {name} failed: {trial.error}."
    return _soak_sentence(trial, rule)


def _soak_sentence(trial: Outcome, rule: Rule) -> str:
    from mydyno.analyse.sequential import gains  # noqa: PLC0415 - numpy and scipy

    response = rule.responses[trial.trial.workload]
    name = trial.trial.treatment
    series = next((s for s in trial.series if s.name == response), None)
    if series is None or len(series.values) < _FEWEST:
        return f"The soak of {name} was too short to show whether it holds its throughput."
    logs = gains(series, rule.lower)
    quarter = len(logs) // _QUARTERS
    early, late = logs[quarter : 2 * quarter], logs[-quarter:]
    change = float(late.mean() - early.mean())
    error = sqrt(sum(_error_squared(part.tolist()) for part in (early, late)))
    minutes = series.t_s[-1] / 60
    low, high = (change_of(change + side * _SURE * error) * 100 for side in (-1, 1))
    span = f"{change_of(change) * 100:+.1f} % ({low:+.1f} to {high:+.1f})"
    if change < -_SURE * error and ratio(-change) > 1 + rule.margin / 2:
        return (
            f"Over a soak of {minutes:.0f} minutes {name} got worse: its last quarter is {span} "
            "from its second. Possible causes are slower than a trial: purge, flushing, "
            "fragmentation, heat or burst credits."
        )
    return (
        f"{name} held over a soak of {minutes:.0f} minutes: its last quarter is {span} from its "
        "second."
    )


def _error_squared(values: Sequence[float]) -> float:
    size = len(values) // _BATCHES
    means = [sum(values[i * size : (i + 1) * size]) / size for i in range(_BATCHES)]
    middle = sum(means) / _BATCHES
    return sum((m - middle) ** 2 for m in means) / (_BATCHES - 1) / _BATCHES
