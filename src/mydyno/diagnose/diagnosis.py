"""A diagnosis: the account of one treatment under one load, its suspects, and what was proven."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

import msgspec

from mydyno.diagnose.account import (
    CLIENT,
    CPU,
    LATCH,
    LOAD_CPU,
    LOG,
    NETWORK,
    READ,
    WRITE,
    AccountLine,
    account,
    following,
)
from mydyno.diagnose.suspects import IDLE, LoadEvidence, Suspect, Unseen, suspects, total
from mydyno.model import Figures

DOSED: Mapping[str, Sequence[str]] = {
    "disk.rate": (READ, WRITE),
    "disk.read_latency": (READ,),
    "disk.flush_latency": (LOG,),
    "link.rate": (NETWORK, CLIENT),  # of a load elsewhere both are one line
    "link.delay": (NETWORK, CLIENT),
    "slow.host": (CPU, LOAD_CPU),
    "slow.server": (CPU,),
    "slow.load": (LOAD_CPU,),
    "cgroup.cpu": (CPU,),
}
"""The states of the account that a dose acts on."""
TIMES = frozenset({"disk.read_latency", "disk.write_latency", "disk.flush_latency", "link.delay"})
"""Doses of a time: less of it is faster."""
_WAITING = {"disk.flush_latency": (LOG, LATCH)}  # one flushes, the others of its group wait for it
_MOST_LOG = 20.0  # of a ratio: beyond, an interval has no end
LIVE = "live"  # the workload of a server in production
ALL = "all"  # the dose that slows all at once
THE_LIMIT, A_LIMIT, NOT_IT, UNDECIDED = "the_limit", "a_limit", "not_it", "undecided"
_WORTH_A_DOSE = 0.15  # expected elasticity of a line: what has less is no limit if it is proven


class Proof(msgspec.Struct, frozen=True):
    """One dose: what its resource's speed is worth, with a simultaneous interval.

    `dose` is the factor of the speed; `elasticity` the change of ln(throughput) for one of
    ln(speed); `verdict` one of `the_limit`, `a_limit`, `not_it`, `undecided`.
    """

    limit: str
    title: str
    dose: float
    elasticity: float
    low: float
    high: float
    verdict: str
    segments: int = 0


class Gain(msgspec.Struct, frozen=True):
    """What a setting gives that takes a suspected limit away: a ratio with its interval."""

    setting: str
    ratio: float
    low: float
    high: float
    segments: int = 0


class Stalls(msgspec.Struct, frozen=True):
    """The share of stalls in segments without a dose, and where connections are while they last."""

    share: float = 0.0
    lines: list[AccountLine] = []


class Diagnosis(msgspec.Struct, frozen=True):
    """Where the connections of a load are, what is suspected, and what is proven.

    `answer` is a limit's name, or `unknown`; `proven`: doses have shown it, in a run with doses
    (`dosed`).  `n` and the account are None where the threads' states were not sampled; proofs
    need no sample.  `stalls`
    are left out of proofs, up to a share of `elasticity.MOST_STALLED`.
    """

    treatment: str
    workload: str
    trials: int
    throughput: float
    unit: str
    n: float | None
    lines: list[AccountLine]
    unknown: float | None
    suspects: list[Suspect]
    unseen: list[Unseen]
    answer: str
    doubts: list[str] = []
    shown: dict[str, float] = {}
    gap: float | None = None
    listed: float | None = None
    in_flight: float | None = None
    window: tuple[float, float] = (0.0, 0.0)
    proven: bool = False
    dosed: bool = False
    proofs: list[Proof] = []
    explained: Proof | None = None
    relaxed: list[Proof] = []
    next_limit: tuple[str, float] | None = None
    reliefs: list[Gain] = []
    stalls: Stalls = Stalls()


@dataclass(frozen=True, slots=True)
class Subject:
    """What is diagnosed: a treatment under a workload, its trials, its throughput in `unit`.

    `in_flight` is throughput times mean latency, for loads without a pause or a rate; `paced` ones
    name a rate.
    """

    treatment: str
    workload: str
    trials: int
    throughput: float
    unit: str
    n: float
    in_flight: float | None = None
    window: tuple[float, float] = (0.0, 0.0)
    paced: bool = False


def diagnosis(subject: Subject, figures: Figures) -> Diagnosis:
    """Return the account of a subject and the limits that fit it, without proof."""
    about = (subject.treatment, subject.workload, subject.trials, subject.throughput, subject.unit)
    found = account(figures.means, subject.n, subject.in_flight)
    if found is None:
        return Diagnosis(*about, None, [], None, [], [], "unknown", shown=_shown(figures.means))
    suspicion = suspects(LoadEvidence.of(figures, found), paced=subject.paced)
    return Diagnosis(
        *about,
        subject.n,
        found.lines,
        found.unknown,
        suspicion.suspects,
        suspicion.unseen,
        suspicion.answer,
        doubts=found.doubts,
        shown=_shown(figures.means),
        gap=found.gap,
        listed=found.listed,
        in_flight=found.in_flight,
        window=subject.window,
    )


def worth(evidence: LoadEvidence, suspected: Sequence[Suspect]) -> dict[str, float]:
    """Return the elasticity to expect of each dose: of the suspects, and of lines without one.

    The second of two limits has often too few connections for a suspect.
    """
    found: dict[str, float] = {}
    for suspect in suspected:
        for dose in suspect.doses:
            found[dose] = max(found.get(dose, 0.0), suspect.expected)
    for dose, states in DOSED.items():
        of_lines = sum(evidence.expected.get(state, 0.0) for state in states)
        if of_lines >= _WORTH_A_DOSE:
            found[dose] = max(found.get(dose, 0.0), of_lines)
    return found


def _gain(proof: Proof) -> Gain:
    logs = (proof.elasticity, proof.low, proof.high)
    ratio, low, high = (exp(min(x, _MOST_LOG)) for x in logs)
    return Gain(proof.title, ratio, low, high, proof.segments)


def main_limit(found: Sequence[Proof]) -> Proof | None:
    """Return the proof of the main limit, if there is one."""
    return next((proof for proof in found if proof.verdict == THE_LIMIT), None)


def with_proofs(
    one: Diagnosis,
    worse: Sequence[Proof],
    better: Sequence[Proof],
    reliefs: Sequence[Proof] = (),
    *,
    stalls: Stalls | None = None,
) -> Diagnosis:
    """Return a diagnosis with what doses have shown: that slow, that relax, that relieve.

    A load that asks for no more is the answer also where no dose has proven a limit.
    """
    every = [proof for proof in worse if proof.limit != ALL]
    main = main_limit(every)
    together = next((proof for proof in worse if proof.limit == ALL), None)
    answer = main.limit if main else one.answer if one.answer == IDLE else "unknown"
    states = _WAITING.get(answer, DOSED.get(answer, ()))
    return msgspec.structs.replace(
        one,
        answer=answer if worse else one.answer,
        proven=main is not None,
        dosed=True,
        proofs=every,
        explained=together,
        relaxed=list(better),
        reliefs=[_gain(proof) for proof in reliefs],
        stalls=stalls or one.stalls,
        next_limit=following(one.lines, one.n or 1.0, states) if states else None,
    )


def _shown(means: Mapping[str, float]) -> dict[str, float]:
    """Return the figures beside the account that the sample has."""
    used = total(means, "process.cpu_user:mysqld", "process.cpu_system:mysqld")
    queries = means.get("status.questions")
    found = {
        "cpu_per_query_s": used / queries if used is not None and queries else None,
        "server_cpu_cores": used,
        "server_run_queue": means.get("process.run_delay:mysqld"),
        "server_minor_faults": means.get("process.minor_faults:mysqld"),
        "server_major_faults": means.get("process.major_faults:mysqld"),
        "server_rss_bytes": means.get("process.rss:mysqld"),
        "server_throttled": means.get("cgroup.throttled:mysqld"),
        "log_waits": means.get("status.innodb_log_waits"),
        "busy_time": means.get("status.busy_time") or None,
    }
    return {name: value for name, value in found.items() if value is not None}
