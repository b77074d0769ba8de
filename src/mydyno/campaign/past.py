"""A campaign of imported runs: existing logs grouped so that they can be compared."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mydyno.campaign.designs import DesignKind, Fixed, PlanInput
from mydyno.logs import ParsedRun
from mydyno.model import Outcome, Trial
from mydyno.stats import Rule

KIND = "imported"  # of a design, and the tool of its workloads
_UNKNOWN = "?"


@dataclass(frozen=True, slots=True)
class Past:
    """The design of a finished campaign: it has no next trial."""

    blocks: int | None = None
    budget_s: float | None = None

    @property
    def total(self) -> None:
        """Return None: no trial is run."""
        return

    def size(self, trial_s: float) -> None:
        """Return None: there is nothing to forecast."""
        del trial_s

    def next(self, history: Sequence[Outcome]) -> Trial | None:
        """Return None: imported runs are not repeated."""
        del history
        return None


@dataclass(frozen=True, slots=True)
class LogLength(Fixed):
    """Runs as long as their logs, less a warm-up."""

    @property
    def label(self) -> str:
        """Return that lengths are those of the logs."""
        return "imported: each run has the length of its log, less a warm-up that was left out"


def _past(inputs: PlanInput, rule: Rule) -> Past:
    del inputs, rule
    return Past()


def _log_length(inputs: PlanInput) -> Fixed:
    return LogLength(inputs.spec.protocol.warmup_s or 0.0, 0.0)


def _imported(inputs: PlanInput, rule: Rule) -> Rule:
    """Return a rule for runs whose order and durability are not known."""
    unknown = dict.fromkeys(inputs.treatments, "unknown")
    return Rule(
        rule.name,
        rule.baseline,
        rule.responses,
        rule.margin,
        rule.guards,
        unknown,
        imported=True,
    )


IMPORTED = DesignKind(
    "imported: existing runs are compared, and no new trials are run",
    _past,
    _log_length,
    _imported,
    runs=False,
)


@dataclass(frozen=True, slots=True)
class ImportedCell:
    """A workload of imported runs: its response and its known traits."""

    name: str
    response: str
    traits: Mapping[str, str]


def cells_of(readings: Sequence[ParsedRun]) -> list[ImportedCell]:
    """Return the workload of each run: the same for runs without a known difference.

    Names are like those of a spec, ``rndrd/24``, followed by what differs: ``rndrd/24,files=4``.
    A trait that only some logs contain separates runs only where these logs differ in it.
    """
    alike: dict[tuple[str, str], list[int]] = {}
    for place, reading in enumerate(readings):
        alike.setdefault((_plain_name(reading), reading.response), []).append(place)
    several = Counter(name for name, _ in alike)
    found: dict[int, ImportedCell] = {}
    for (name, response), places in alike.items():
        full_name = f"{name},{response}" if several[name] > 1 else name
        found |= _separated(full_name, response, [(p, readings[p].traits) for p in places])
    return [found[place] for place in range(len(readings))]


def _plain_name(reading: ParsedRun) -> str:
    threads = reading.traits.get("threads")
    return f"{reading.name}/{threads}" if threads else reading.name


def _separated(
    name: str, response: str, runs: Sequence[tuple[int, Mapping[str, str]]]
) -> Iterator[tuple[int, ImportedCell]]:
    keys = dict.fromkeys(key for _, traits in runs for key in traits)
    levels = {key: {t[key] for _, t in runs if key in t} for key in keys}
    differing = [key for key, values in levels.items() if len(values) > 1]
    names = {
        place: ",".join([name, *(f"{key}={traits.get(key, _UNKNOWN)}" for key in differing)])
        for place, traits in runs
    }
    for place, _ in runs:
        same = [traits for other, traits in runs if names[other] == names[place]]
        known = {key: value for traits in same for key, value in traits.items()}
        yield place, ImportedCell(names[place], response, known)
