"""What fio says of the jobs of one group, in text or in JSON, as one run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mydyno.workloads.foreign.number import PrintedNumber
from mydyno.workloads.foreign.parsed_run import Caveat

DIRECTIONS = ("read", "write", "trim")
KEPT = (50.0, 95.0, 99.0, 99.9)
_RATES = {"read": "reads", "write": "writes", "trim": "trims"}


@dataclass(slots=True)
class Direction:
    """One direction of a job: requests and bytes over milliseconds, latencies in seconds."""

    requests: float = 0.0
    runtime_ms: float = 0.0
    printed: PrintedNumber | None = None
    size_bytes: float = 0.0
    latencies: dict[str, float] = field(default_factory=dict)
    line: int = -1


@dataclass(slots=True)
class Job:
    """One job, or several that fio reports as one."""

    name: str
    group: int
    jobs: int
    error: int
    line: int
    ways: dict[str, Direction] = field(default_factory=dict)
    traits: dict[str, str] = field(default_factory=dict)


def percentile_name(percent: float) -> str:
    """Return the name of a percentile: p99, p999; empty for those that are not kept."""
    return f"p{percent:g}".replace(".", "") if percent in KEPT else ""


def totals(jobs: Sequence[Job]) -> dict[str, float]:
    """Return a group's requests and bytes per second; raise `ValueError` for none or an error.

    Percentiles are those of a direction that only one job made; they are merged from nothing else.
    """
    if failed := next((job for job in jobs if job.error), None):
        raise ValueError(f"job {failed.name} of fio ended with error {failed.error}")
    values: dict[str, float] = {}
    longest_ms = 0.0
    for name in DIRECTIONS:
        ways = [job.ways[name] for job in jobs if name in job.ways]
        ways = [way for way in ways if way.requests and way.runtime_ms]
        if ways:
            runtime_ms = max(way.runtime_ms for way in ways)
            longest_ms = max(longest_ms, runtime_ms)
            values[_RATES[name]] = sum(way.requests for way in ways) / runtime_ms * 1e3
            if name != "trim":
                values[f"{name}_bytes"] = sum(way.size_bytes for way in ways) / runtime_ms * 1e3
    if not values:
        raise ValueError("a report of fio without a request")
    rates = [values[rate] for rate in _RATES.values() if rate in values]
    return values | {"iops": sum(rates), "seconds": longest_ms / 1e3} | _latencies(jobs)


def _latencies(jobs: Sequence[Job]) -> dict[str, float]:
    made = [(n, way) for job in jobs for n, way in job.ways.items() if way.requests]
    latencies: dict[str, float] = {}
    for name in DIRECTIONS:
        ways = [way for n, way in made if n == name]
        if len(ways) == 1:
            part = "" if len(made) == 1 else f"{name}_"
            latencies |= {f"latency_{part}{k}_s": v for k, v in ways[0].latencies.items()}
    return latencies


def caveats(jobs: Sequence[Job]) -> Iterator[Caveat]:
    """Yield what does not follow from counts, or cannot be merged."""
    for job in jobs:
        for name, way in job.ways.items():
            found = way.requests / way.runtime_ms * 1e3 if way.runtime_ms else 0.0
            if way.printed and way.requests and not way.printed.agrees(found):
                note = f"prints {way.printed.value:.6g} {name} IOPS; its requests and seconds give"
                yield Caveat(way.line, f"{note} {found:.6g}")
    for name in DIRECTIONS:
        several = [job for job in jobs if name in job.ways and job.ways[name].latencies]
        if len(several) > 1:
            note = f"{len(several)} jobs' {name} percentiles: without group_reporting they cannot"
            yield Caveat(several[0].line, f"{note} be merged, and are left out")


def name_of(jobs: Sequence[Job]) -> tuple[str, dict[str, str]]:
    """Return what a group is called (``randwrite-4k-qd64``) and the traits of its load."""
    names = list(dict.fromkeys(_called(job.traits) for job in jobs))
    traits: dict[str, str] = {"threads": f"{sum(job.jobs for job in jobs)}"}
    for job in jobs:
        for key, value in job.traits.items():
            if key not in {"rw", "bs", "iodepth"} and value:
                traits.setdefault(key, value)
    if len(names) == 1 and len(jobs) > 1 and len({j.name for j in jobs}) > 1:
        traits["jobs"] = ",".join(dict.fromkeys(j.name for j in jobs))
    return "+".join(names), traits


def _called(traits: Mapping[str, str]) -> str:
    depth = traits.get("iodepth", "1")
    parts = [traits.get("rw", "fio"), traits.get("bs", ""), f"qd{depth}" if depth != "1" else ""]
    return "-".join(filter(None, parts))
