"""A campaign of runs that are over: logs of others, put in order so that they can be compared."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mydyno.model import Outcome, Trial
from mydyno.workloads.foreign import ParsedRun

KIND = "imported"  # of a design, and the tool of its workloads
_UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Past:
    """The design of what is over: no trial follows."""

    blocks: int | None = None
    budget_s: float | None = None

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return nothing: what others ran is not run again."""
        del history
        return None


@dataclass(frozen=True, slots=True)
class ImportedCell:
    """A workload of imported runs: its response and all that is known of it."""

    name: str
    response: str
    traits: Mapping[str, str]


def cells_of(readings: Sequence[ParsedRun]) -> list[ImportedCell]:
    """Return the workload of each reading: alike only where nothing that is known of them differs.

    They are named as ours are, ``rndrd/24``; what else differs follows: ``rndrd/24,files=4``.
    A trait that only some logs tell keeps them apart only where those that tell it differ.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for place, reading in enumerate(readings):
        alike.setdefault((_plain_name(reading), reading.response), []).append(place)
    several = Counter(name for name, _ in alike)
    found: dict[int, ImportedCell] = {}
    for (name, response), places in alike.items():
        whole = f"{name},{response}" if several[name] > 1 else name
        found |= _apart(whole, response, [(p, readings[p].traits) for p in places])
    return [found[place] for place in range(len(readings))]


def _plain_name(reading: ParsedRun) -> str:
    threads = reading.traits.get("threads")
    return f"{reading.name}/{threads}" if threads else reading.name


def _apart(
    name: str, response: str, told: Sequence[tuple[int, Mapping[str, str]]]
) -> Iterator[tuple[int, ImportedCell]]:
    keys = dict.fromkeys(key for _, traits in told for key in traits)
    levels = {key: {t[key] for _, t in told if key in t} for key in keys}
    apart = [key for key, values in levels.items() if len(values) > 1]
    names = {
        place: ",".join([name, *(f"{key}={traits.get(key, _UNKNOWN)}" for key in apart)])
        for place, traits in told
    }
    for place, _ in told:
        same = [traits for other, traits in told if names[other] == names[place]]
        known = {key: value for traits in same for key, value in traits.items()}
        yield place, ImportedCell(names[place], response, known)
