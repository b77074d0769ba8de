"""The warnings of a comparison, each told once for all that it is about."""

import re
from collections.abc import Mapping, Sequence

from mydyno.analyse.result import Comparison

_NAMED = 4  # treatments of which the same is said
_OF_A_TRIAL = re.compile(r"trial (?P<trial>\d+) (?P<end>\w+: .*)", re.DOTALL)


def warned(compared: Comparison) -> Sequence[tuple[str, str]]:
    """Return what each warning is about, and its words; the campaign's own are about ``""``.

    What is said of several treatments word for word and number for number is told once, and so
    is the end that several trials came to.
    """
    said_of: dict[str, list[str]] = {}
    ends: dict[str, dict[str, list[str]]] = {}
    for row in compared.treatments:
        who = f"{row.name}, {row.workload}"
        for said in row.warnings:
            if found := _OF_A_TRIAL.fullmatch(said):
                ends.setdefault(found["end"], {}).setdefault(who, []).append(found["trial"])
            else:
                said_of.setdefault(said, []).append(who)
    told = [("", said) for said in compared.warnings]
    told += [(_listed(whose), said) for said, whose in said_of.items()]
    return told + [_trials_of(end, trials) for end, trials in ends.items()]


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
