"""A workload: throws of dice, ``SECOND THROWS`` a line."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mydyno.loads import Reports, Target, Tool, WorkloadInfo
from mydyno.loads.protocol import no_report, prefix, text_lines
from mydyno.model import Action, Interval


class ThrowsParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of ``[workloads.X]``: how many dice a throw has, with a server or without."""

    dice: int = 1
    server: bool = False


@dataclass(frozen=True, slots=True)
class Throws:
    """A number of dice, thrown until the load is stopped."""

    info: WorkloadInfo
    dice: int

    def prepare(self, target: Target) -> Sequence[Action]:
        return ()

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        return Action((*prefix(env), "throw", f"--dice={self.dice}", f"--seed={seed}"))

    def parse(self, lines: Iterable[bytes]) -> Reports:
        for number, line in text_lines(lines):
            try:
                second, throws = map(float, line.split())
            except ValueError:
                raise no_report("throw", number, line) from None
            yield Interval(second, {"tps": throws})

    def describe(self) -> Sequence[Action]:
        return ()


def cells(name: str, params: ThrowsParams, response: str | None) -> Sequence[Throws]:
    info = WorkloadInfo(f"{name}/{params.dice}", response or "tps", needs_server=params.server)
    return [Throws(info, params.dice)]


TOOL = Tool(ThrowsParams, cells, program="throw")
