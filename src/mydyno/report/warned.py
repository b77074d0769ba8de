"""The warnings of a comparison, equal ones merged."""

import re
from collections.abc import Mapping, Sequence

from mydyno.analyse.result import Comparison

_NAMED = 4  # treatments named in a merged warning
_OF_A_TRIAL = re.compile(r"trial (?P<trial>\d+) (?P<end>\w+: .*)", re.DOTALL)


def warned(compared: Comparison) -> Sequence[tuple[str, str]]:
    """Return pairs of subject and message; the subject of the campaign's own warnings is ``""``.

    Equal messages of several treatments are merged, and so are equal ends of several trials.
    """
    subjects: dict[str, list[str]] = {}
    ends: dict[str, dict[str, list[str]]] = {}
    for row in compared.treatments:
        who = f"{row.name}, {row.workload}"
        for message in row.warnings:
            if found := _OF_A_TRIAL.fullmatch(message):
                ends.setdefault(found["end"], {}).setdefault(who, []).append(found["trial"])
            else:
                subjects.setdefault(message, []).append(who)
    merged = [("", message) for message in compared.warnings]
    merged += [(_listed(whose), message) for message, whose in subjects.items()]
    return merged + [_trials_of(end, trials) for end, trials in ends.items()]


def _trials_of(end: str, trials: Mapping[str, Sequence[str]]) -> tuple[str, str]:
    if len(trials) == 1:
        ((who, numbers),) = trials.items()
        return who, f"{_trials(numbers)} {end}"
    return "; ".join(f"{who}: {_trials(n)}" for who, n in trials.items()), end


def _listed(whose: Sequence[str]) -> str:
    named, more = whose[:_NAMED], len(whose) - _NAMED
    return "; ".join(named) + (f" and {more} more" if more > 0 else "")


def _trials(numbers: Sequence[str]) -> str:
    *most, last = numbers
    return f"trials {', '.join(most)} and {last}" if most else f"trial {last}"
