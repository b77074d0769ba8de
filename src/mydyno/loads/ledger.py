"""A load that keeps a ledger of its commits: what was acknowledged, and when."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from mydyno.loads import protocol, sysbench
from mydyno.loads.protocol import Target, Workload, WorkloadInfo
from mydyno.loads.sysbench import METRICS, connection_file, sysbench_argv
from mydyno.model import Action

MARK = "mydyno-[0-9]+-[0-9]+;"  # in each row that a transaction writes, and so in the binary log
TABLES = ("ledger", "page")


class LedgerParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The keys of a ``[workloads.X]`` table with ``tool = "ledger"``.

    Each transaction inserts a row and changes one of `pages` rows.
    """

    threads: int | list[int] = 8
    pages: int = 50_000


@dataclass(frozen=True, slots=True)
class Ack:
    """A commit that was acknowledged `at_s` of the monotonic clock; `number` counts a client's."""

    client: int
    number: int
    at_s: float


def cells(name: str, params: LedgerParams, response: str | None = None) -> Sequence[Workload]:
    """Return one workload for each thread count, called ``name/threads``.

    Raises `SpecError` naming the key for an unknown response, or a value out of range.
    """
    place = f"workloads.{name}"
    protocol.check_response(place, response or "tps", METRICS)
    protocol.check_range(f"{place}.pages", params.pages, 1, 10_000_000)
    key = f"sysbench/ledger/{params.pages}"
    info = WorkloadInfo(name, response or "tps", key, needs_server=True, closed_loop=True)
    return [
        LedgerLoad(info.at(n), params, n) for n in protocol.thread_counts(place, params.threads)
    ]


@dataclass(frozen=True, slots=True)
class LedgerLoad(sysbench.Hooked):
    """Numbered commits by one number of threads, each acknowledged in a line of the output."""

    info: WorkloadInfo
    params: LedgerParams
    threads: int

    def prepare(self, target: Target) -> Sequence[Action]:
        """Return the commands that drop the two tables and make them."""
        script = str(sysbench.LUA / "ledger.lua")
        argv = (*sysbench_argv(target, {}), script, f"--config-file={connection_file(target)}")
        return [Action((*argv, f"--pages={self.params.pages}", step)) for step in _STEPS]

    def run(self, target: Target, seed: int, env: Mapping[str, str]) -> Action:
        """Return an endless run that reports every second and each commit."""
        return Action(
            (
                *sysbench_argv(target, dict(env) | {"MYDYNO_SCRIPT": "ledger"}),
                str(sysbench.LUA / "report.lua"),
                f"--config-file={connection_file(target)}",
                f"--pages={self.params.pages}",
                f"--threads={self.threads}",
                *sysbench.endless(seed, "rand-seed", verbosity=2),
            )
        )


_STEPS = ("cleanup", "prepare")


def ack(line: bytes) -> Ack | None:
    """Return the commit that a line of the load acknowledges; None for another line."""
    words = line.split()
    if not line.startswith(sysbench.ACK.encode()) or not line.endswith(b"\n") or len(words) != 4:  # noqa: PLR2004
        return None
    return Ack(int(words[1]), int(words[2]), float(words[3]))
