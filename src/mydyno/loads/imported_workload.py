"""The workload of an imported run, parsed from its log; it can be compared, but not run."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mydyno.loads.protocol import Reports, Target, WorkloadInfo
from mydyno.logs import ParsedRun, read
from mydyno.model import Action, SpecError


class ImportedParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of ``[workloads.X]`` with ``tool = "imported"``: `is` has the traits."""

    of: dict[str, str] = msgspec.field(default_factory=dict, name="is")


@dataclass(frozen=True, slots=True)
class ImportedWorkload:
    """A workload of imported logs; its raw output is the part of the log with one run."""

    info: WorkloadInfo

    def prepare(self, target: Target) -> Sequence[Action]:
        """Raise `SpecError`: imported runs cannot be repeated."""
        raise self._no_load(target)

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Raise `SpecError`: imported runs cannot be repeated."""
        raise self._no_load(target, seed, env)

    def parse(self, lines: Iterable[bytes]) -> Reports:
        """Yield the intervals that a run's log reports, or one of all the run."""
        if reading := _reading(lines):
            yield from reading.intervals

    def totals(self, lines: Iterable[bytes]) -> Mapping[str, float]:
        """Return the sum of all the run, from counts and seconds, by metric in base units."""
        reading = _reading(lines)
        totals = reading.totals if reading else {}
        return {name: value for name, value in totals.items() if name != "seconds"}

    def describe(self) -> Sequence[Action]:
        """Return nothing: the tool was elsewhere."""
        return ()

    def _no_load(self, *asked: object) -> SpecError:
        del asked
        return SpecError(f"{self.info.name}: imported logs cannot be run; use compare or report")


def cells(name: str, params: ImportedParams, response: str | None) -> Sequence[ImportedWorkload]:
    """Return the one cell of an imported workload."""
    closed_loop = not {"rate", "rate_iops"} & params.of.keys()
    return (ImportedWorkload(WorkloadInfo(name, response or "tps", closed_loop=closed_loop)),)


def _reading(lines: Iterable[bytes]) -> ParsedRun | None:
    found = read(b"".join(lines)).readings
    return found[0] if found else None
