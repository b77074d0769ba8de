"""One run of sysbench, from its lines to what it was and what it gave."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from mydyno.model import Interval
from mydyno.workloads.foreign.command_line import CommandLine
from mydyno.workloads.foreign.number import brief, size
from mydyno.workloads.foreign.parsed_run import Caveat, ParsedRun
from mydyno.workloads.foreign.sysbench_checks import checks
from mydyno.workloads.foreign.sysbench_totals import Totals, is_cut, totals_of

_RESULTS = ("transactions", "requests", "performed", "executed", "reads", "writes",
            "iops_read", "iops_write", "events", "speed")  # fmt: skip
_MODES = MappingProxyType(
    {
        "sequential read": "seqrd",
        "sequential write (creation)": "seqwr",
        "sequential rewrite": "seqrewr",
        "random read": "rndrd",
        "random write": "rndwr",
        "random r/w": "rndrw",
    }
)
_MIXES = MappingProxyType(
    {  # queries of a transaction: read, write, other (sysbench 0.5 and later)
        (14, 4, 2): "oltp_read_write",
        (14, 0, 2): "oltp_read_only",
        (0, 4, 2): "oltp_write_only",
        (1, 0, 0): "oltp_point_select",
    }
)
_OPTIONS = MappingProxyType(
    {
        "threads": ("threads", "num_threads"),
        "tables": ("tables", "oltp_tables_count", "oltp_num_tables"),
        "table_size": ("table_size", "oltp_table_size"),
        "scale": ("scale",),
        "rate": ("rate", "tx_rate"),
        "mode": ("file_test_mode",),
        "block_size": ("file_block_size",),
        "file_total_size": ("file_total_size",),
        "files": ("file_num",),
        "flags": ("file_extra_flags",),
        "db_ps_mode": ("db_ps_mode",),
        "distribution": ("rand_type", "oltp_dist_type"),
    }
)
_SIZES = ("block_size", "file_total_size")
_OLD_TESTS = ("oltp", "oltp_legacy", "complex", "select")  # the mix says more than these names
_DEFAULT_BLOCK = 16384
_FLAGS = MappingProxyType({"(none)": "none", "0": "none", "16384": "direct", "directio": "direct"})


@dataclass(slots=True)
class SysbenchRun:
    """What was read of one run; `traits` and `summary` hold texts, and the line they are from."""

    first: int
    command: CommandLine | None = None
    version: str = ""
    announced: bool = False
    traits: dict[str, tuple[str, int]] = field(default_factory=dict)
    intervals: list[Interval] = field(default_factory=list)
    summary: dict[str, tuple[tuple[str, ...], int]] = field(default_factory=dict)
    failures: list[Caveat] = field(default_factory=list)

    @property
    def has_result(self) -> bool:
        """Return whether there is a result in it."""
        return bool(self.intervals) or any(key in self.summary for key in _RESULTS)


def reading_of(run: SysbenchRun, lines: Sequence[int], raw: bytes) -> ParsedRun:
    """Return the parsed run; raise `ValueError` for a test that cannot be compared."""
    if "speed" in run.summary:
        raise ValueError("a test of processor or memory: neither statements nor files")
    traits = _traits(run)
    block_bytes = int(float(traits.get("block_size") or _DEFAULT_BLOCK))
    totals = totals_of(run.summary, run.intervals, block_bytes)
    is_file = "iops" in totals.values
    caveats = checks(run.summary, run.intervals, totals)
    caveats += _of_the_command(run, totals)
    if is_file and "block_size" not in traits:
        problem = f"no block size: sysbench's default of {_DEFAULT_BLOCK} is taken"
        caveats.append(Caveat(run.first, problem))
    traits |= {} if "threads" in traits else _threads(run, totals)
    intervals = [_completed(i, block_bytes) for i in run.intervals] if is_file else run.intervals
    name = _file_name(traits) if is_file else _statement_name(run, totals)
    return ParsedRun(
        name=name,
        response=totals.response,
        traits={k: brief(float(v)) if k in _SIZES else v for k, v in traits.items()},
        totals=totals.values,
        intervals=tuple(intervals) or (Interval(totals.seconds, totals.rates),),
        lines=tuple(sorted(lines)),
        raw=raw,
        caveats=(*caveats, *(Caveat(f.line, f"sysbench: {f.text}") for f in run.failures)),
    )


def _traits(run: SysbenchRun) -> dict[str, str]:
    """Return the traits from the output, or else from the command."""
    options = run.command.options if run.command else {}
    found = {
        name: options[key] for name, keys in _OPTIONS.items() for key in keys if key in options
    }
    found |= {name: value for name, (value, _) in run.traits.items() if name != "oltp"}
    found["mode"] = _MODES.get(found.get("mode", ""), found.get("mode", ""))
    for name in _SIZES:
        if name in found:
            found[name] = f"{size(found[name].replace(' ', '')).value:.0f}"
    if run.version:
        found["sysbench"] = ".".join(run.version.split(".")[:2])
    if "flags" in found:
        found["flags"] = _FLAGS.get(found["flags"], found["flags"])
    if run.announced and "block_size" in found:
        found.setdefault("fsync", "none")
    if found["mode"] != "rndrw":
        found.pop("rwratio", None)
    if found.get("rate") == "0":
        del found["rate"]
    return {name: value for name, value in found.items() if value}


def _threads(run: SysbenchRun, totals: Totals) -> dict[str, str]:
    """Return the number of threads computed from the events of each, if possible."""
    fair = run.summary.get("fair")
    if fair is None or not totals.events or not float(fair[0][0]):
        return {}
    return {"threads": f"{round(totals.events / float(fair[0][0]))}"}


def _file_name(traits: dict[str, str]) -> str:
    return traits.pop("mode", "fileio")


def _statement_name(run: SysbenchRun, totals: Totals) -> str:
    """Return the script of the command, else the one whose transactions are made like these."""
    script = run.command.words[0] if run.command and run.command.words else ""
    if run.command and "test" in run.command.options:
        script = run.command.options["test"]
    script = re.sub(r"\.lua$", "", script.rsplit("/", 1)[-1])
    if script and script not in {*_OLD_TESTS, "run"}:
        return script
    mix = totals.mix
    return _MIXES.get(mix, "-".join(["oltp", *map(str, mix)])) if mix else "oltp"


def _completed(interval: Interval, block_bytes: int) -> Interval:
    """Return an interval of the file test with its requests, which sysbench gives as bytes."""
    values: dict[str, float] = dict(interval.values)
    for name in ("read", "write"):
        values[f"{name}s"] = values.get(f"{name}_bytes", 0.0) / block_bytes
    values["iops"] = values["reads"] + values["writes"]
    return Interval(interval.t_s, values)


def _of_the_command(run: SysbenchRun, totals: Totals) -> list[Caveat]:
    """Return where the command above a result is not the one that gave it."""
    options: Mapping[str, str] = run.command.options if run.command else {}
    asked = options.get("time") or options.get("max_time") or "0"
    caveats: list[Caveat] = []
    asked_s = int(asked) if asked.isdigit() and not is_cut(run.summary) else 0
    if asked_s and abs(asked_s - totals.seconds) > 1 + 0.05 * asked_s:
        problem = f"the command says {asked} s, but its result is of {totals.seconds:.1f} s"
        caveats.append(Caveat(run.first, f"{problem}; check that they belong together"))
    shown, line = run.traits.get("threads", ("", 0))
    requested = options.get("threads") or options.get("num_threads") or shown
    if shown and shown != requested:
        caveats.append(Caveat(line, f"the command says {requested} threads, its result {shown}"))
    return caveats
