"""Diagnoses of real faults, by evidence alone and by doses: `make bench-diagnose-real`.

Each case is a spec with one planted fault, and the same without it: a case counts only where taking
the fault away raises throughput by a tenth, else nothing of it limits the load.  Rivals read the
same figures.  Rows are written as they come; a run again goes on where it was cut off.  The cases
are in `diagnose_cases.py`, the table in `diagnose_table.py`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from diagnose_cases import CONTROLS, FAULTS, PAIRS, calm, spec
from diagnose_table import RESULTS, table
from mydyno.campaign.doses import STALLED, STEADY
from mydyno.cli.run_directory import recorded, reopen
from mydyno.cli.why import connections_of
from mydyno.diagnose import LoadEvidence, account, suspects
from mydyno.journal import outcomes
from mydyno.journal.register import RunDir
from mydyno.sample.figures import figures

MYDYNO = str(Path(sys.executable).with_name("mydyno"))
TRUTH_BLOCKS = 20


def ran(text: str, folder: Path, *more: str) -> list[dict[str, Any]]:
    """Run a spec and return its diagnoses."""
    path = folder / "spec.toml"
    path.write_text(text)
    command = more or ("run",)
    done = subprocess.run(
        [MYDYNO, command[0], str(path), "-o", str(folder / "run"), *command[1:], "--json"],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(done.stderr.decode()[-800:])
    why = subprocess.run(
        [MYDYNO, "why", str(folder / "run"), "--json"], capture_output=True, check=True
    )
    return json.loads(why.stdout)


class Noted(dict[str, float]):
    """Figures that note which of them are looked at."""

    def __init__(self, found: Mapping[str, float]) -> None:
        super().__init__(found)
        self.seen = {key for key in found if key.startswith("state.")}

    def get(self, key: str, default: float | None = None) -> float | None:
        """Return a figure, noted."""
        self.seen.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> float:
        self.seen.add(key)
        return super().__getitem__(key)


def looked_at(run: Path, treatment: str) -> dict[str, dict[str, float]]:
    """Return the figures of a run's first trial of a treatment that account and limits look at."""
    campaign, _ = reopen(run)
    contents, _ = recorded(run, campaign)
    first = next(o for o in outcomes(contents.events) if o.trial.treatment == treatment)
    made = figures(RunDir(run).trial(first.trial.id), first.window)
    noted = replace(made, means=Noted(made.means))
    found = account(
        noted.means, connections_of(campaign.workloads[first.trial.workload], noted.means)
    )
    suspects(LoadEvidence.of(noted, found))
    return {
        part: {k: round(v, 6) for k, v in sorted(getattr(made, part).items()) if k in kept}
        for part, kept in (
            ("means", noted.means.seen),
            ("spread", {"disk.reads"}),
            ("rise", {"status.innodb_pages_read"}),
        )
    }


# Half of a CPU, in slices of 2 ms.
_SLICES = """import time
while True:
    end = time.perf_counter() + 0.002
    while time.perf_counter() < end:
        pass
    time.sleep(0.002)
"""


@contextmanager
def busy(processes: int) -> Iterator[None]:
    """Keep half of so many CPUs busy: work of others on this host.

    At real-time priority: beside this load Linux 6.18 gave busy processes of the same priority, in
    sessions of their own, 0.03 s of a CPU in 20 s.
    """
    argv = ("chrt", "--fifo", "1", sys.executable, "-c", _SLICES)
    others = [subprocess.Popen(argv) for _ in range(processes)]
    try:
        yield
    finally:
        for one in others:
            one.kill()
            one.wait()


_GROUPS = [Path("/sys/fs/cgroup") / name / "mydyno-bench" for name in ("cpu", "cpuacct")]
_PERIOD_US = 100_000


@contextmanager
def quota(relief: str) -> Iterator[None]:
    """Keep the load within a CPU quota, as a container does: `quota 60%`.

    Its processes are moved into a control group (version 1) of their own as they start.
    """
    before, _, percent = relief.partition("quota ")
    if before or not percent:
        yield
        return
    for group in _GROUPS:
        group.mkdir()
    (_GROUPS[0] / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
    (_GROUPS[0] / "cpu.cfs_quota_us").write_text(str(_PERIOD_US * int(percent[:-1]) // 100))
    end = threading.Event()
    mover = threading.Thread(target=_move, args=(end,))
    mover.start()
    try:
        yield
    finally:
        end.set()
        mover.join()
        for group in _GROUPS:
            group.rmdir()


def _move(end: threading.Event) -> None:
    moved: set[str] = set()
    while not end.wait(0.1):
        for pid, words in command_lines().items():
            if is_load(words) and pid not in moved:
                moved.add(pid)
                with suppress(OSError):  # it may have ended meanwhile
                    for group in _GROUPS:
                        (group / "cgroup.procs").write_text(pid)


def command_lines() -> dict[str, list[str]]:
    """Return the command lines of this host's processes, by pid."""
    found = {}
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):  # a process may end meanwhile
            found[one.parent.name] = one.read_bytes().decode(errors="replace").split("\0")
    return found


def is_load(words: list[str]) -> bool:
    """Return whether a command line is that of a load that runs."""
    return words[0].endswith("sysbench") and "run" in words


def option_files(words: list[str]) -> list[str]:
    """Return the option files of a private server that a command line names."""
    start = "--defaults-file=/var/tmp/mydyno-"
    return [word.partition("=")[2] for word in words if word.startswith(start)]


def evidence(server: str, name: str) -> dict[str, Any]:
    """Run a fault and the same without it; return what the evidence suggests."""
    right, device, settings, relief, load = FAULTS[name]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made)
        (folder / "a").mkdir()
        (folder / "b").mkdir()
        twice = {"FAULT": settings, "AGAIN": settings}
        if isinstance(relief, dict):
            arms = {"FAULT": settings, "RELIEF": relief}
            found = ran(spec(server, device, arms, load), folder / "a")
            pair = [next(d for d in found if d["treatment"] == name) for name in arms]
        elif relief == "threads":
            found = ran(spec(server, device, twice, load), folder / "a")
            pair = [found[0], {**found[0], "throughput": 2 * found[0]["throughput"]}]
        else:
            with busy(2 if relief == "other work" else 0), quota(relief):
                (first, *_) = ran(spec(server, device, twice, load), folder / "a")
            pair = [first, ran(spec(server, device, twice, calm(relief, load)), folder / "b")[0]]
        seen = looked_at(folder / "a" / "run", "FAULT")
    one, other = pair
    n = float(one["n"])
    return {
        "kind": name,
        "server": server,
        "right": list(right),
        "validated": other["throughput"] / one["throughput"],
        "answer": one["answer"],
        "suspects": [s["limit"] for s in one["suspects"]],
        "closes": abs(one["gap"]) / n,
        "doubts": one["doubts"],
        "lines": {line["state"]: round(line["connections"], 3) for line in one["lines"]},
        "largest": max(one["lines"], key=lambda line: line["connections"])["state"],
        "figures": seen,
    }


def dosed(
    server: str, device: str, settings: Mapping[str, str], load: str, *more: str
) -> dict[str, Any]:
    """Return the diagnosis by doses of one treatment, with its segments."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        text = spec(server, device, {"FAULT": settings, "AGAIN": settings}, load)
        (one,) = ran(text, Path(made), "diagnose", "--treatment", "FAULT", *more)
        return {**one, "segments": measured(Path(made) / "run")}


def measured(run: Path) -> list[list[Any]]:
    """Return the segments: dose, block, throughput, the same outside of stalls, their share."""
    campaign, _ = reopen(run)
    contents, _ = recorded(run, campaign)
    found = []
    for one in outcomes(contents.events)[1:]:
        metrics = {m.name: round(m.value, 4) for m in one.metrics}
        values = [metrics.get(name) for name in ("tps", STEADY, STALLED)]
        found.append([one.trial.treatment, one.trial.block, *values])
    return found


def proof(server: str, name: str) -> dict[str, Any]:
    """Diagnose a fault by doses."""
    _, device, settings, _, load = FAULTS[name]
    one = dosed(server, device, settings, load)
    return {
        "kind": name,
        "server": server,
        "answer": one["answer"],
        "proven": one["proven"],
        **proofs(one),
        "relaxed": [round(p["elasticity"], 3) for p in one["relaxed"]],
    }


def truth(server: str, name: str) -> dict[str, Any]:
    """Diagnose a fault in so many blocks that those after the answer show how right it was."""
    _, device, settings, _, load = FAULTS[name]
    one = dosed(server, device, settings, load, "--blocks", str(TRUTH_BLOCKS))
    return {"kind": name, "answer": one["answer"], "proven": one["proven"], **proofs(one)}


def control(server: str, name: str) -> dict[str, Any]:
    """Diagnose a load that nothing of the host limits; a limit proven of it is wrong."""
    device, settings, load = CONTROLS[name]
    one = dosed(server, device, settings, load)
    return {"kind": name, "answer": one["answer"], "proven": one["proven"], **proofs(one)}


def pair(server: str, name: str) -> dict[str, Any]:
    """Take each of two limits away, then diagnose both by doses."""
    doses, device, settings, reliefs, load = PAIRS[name]
    arms = {"FAULT": settings} | {f"WITHOUT-{n}": {**settings, **r} for n, r in enumerate(reliefs)}
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        found = ran(spec(server, device, arms, load), Path(made))
    rates = {one["treatment"]: one["throughput"] for one in found}
    one = dosed(server, device, settings, load)
    return {
        "kind": name,
        "doses": list(doses),
        "validated": [rates[arm] / rates["FAULT"] for arm in arms if arm != "FAULT"],
        "suspects": [s["limit"] for s in one["suspects"]],
        "expected": [list(s["doses"]) for s in one["suspects"]],
        "answer": one["answer"],
        "verdicts": {p["limit"]: p["verdict"] for p in one["proofs"]},
        "next": one["next_limit"],
        "stalled": round(one["stalls"]["share"], 3),
        **proofs(one),
    }


# Words of MySQLTuner's warnings and advice, and the limit that they stand for.
ADVICE = {
    "InnoDB buffer pool / data size": "pool_size",
    "innodb_buffer_pool_size": "pool_size",
    "Ratio InnoDB log file size": "redo_size",
    "innodb_log_file_size": "redo_size",
    "innodb_redo_log_capacity": "redo_size",
    "InnoDB log waits": "log_buffer",
    "innodb_log_buffer_size": "log_buffer",
    "Table cache hit rate": "table_cache",
    "table_open_cache": "table_cache",
    "table_definition_cache": "table_cache",
    "open_files_limit": "table_cache",
    "Temporary tables created on disk": "temporary_tables",
    "tmp_table_size": "temporary_tables",
    "max_heap_table_size": "temporary_tables",
    "Sorts requiring temporary tables": "sort_buffer",
    "sort_buffer_size": "sort_buffer",
    "Thread cache": "connects",
    "thread_cache_size": "connects",
    "Highest usage of available connections": "max_connections",
    "max_connections": "max_connections",
    "innodb_flush_log_at_trx_commit": "flush_latency",
}
_SETTLED_S = 14.0  # of the load, before MySQLTuner is asked: most of its window


def tuner(server: str, name: str) -> dict[str, Any]:
    """Run a fault, ask MySQLTuner while its load runs, and return the limits of its advice."""
    right, device, settings, _, load = FAULTS[name]
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        path = Path(made) / "spec.toml"
        path.write_text(spec(server, device, {"FAULT": settings, "AGAIN": settings}, load))
        run = subprocess.Popen(
            [MYDYNO, "run", str(path), "-o", f"{made}/run"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            admin = loaded_server()
            time.sleep(_SETTLED_S)
            argv = ["mysqltuner", "--defaults-file", str(admin), "--nocolor"]
            asked = subprocess.run(argv, capture_output=True, check=False, timeout=60)
            text = asked.stdout.decode(errors="replace")
            if "[!!]" not in text:
                raise RuntimeError(f"MySQLTuner: {text[-300:]}{asked.stderr.decode()[-300:]}")
        finally:
            run.wait()  # a run that is ended keeps its data, to go on with
    lines = [line for line in text.splitlines() if line.startswith("[!!]")]
    lines += text.partition("Variables to adjust")[2].splitlines()
    named = [words for line in lines for words in ADVICE if words in line]
    return {
        "kind": name,
        "right": list(right),
        "advice": list(dict.fromkeys(named)),
        "suspects": list(dict.fromkeys(ADVICE[words] for words in named)),
        "ended": "Variables to adjust" in text or "No additional" in text,
    }


def loaded_server() -> Path:
    """Return the admin file of mydyno's server once sysbench runs on it."""
    end = time.monotonic() + 300
    while time.monotonic() < end:
        lines = [*command_lines().values()]
        if any(map(is_load, lines)):
            files = [file for words in lines for file in option_files(words)]
            if files:
                return Path(files[0]).with_name("admin.cnf")
        time.sleep(0.2)
    raise RuntimeError("no load began within five minutes")


def proofs(one: Mapping[str, Any]) -> dict[str, Any]:
    """Return elasticities with their intervals, of each dose and of all at once."""
    keys = ("elasticity", "low", "high")
    return {
        "proofs": {p["limit"]: [round(p[k], 3) for k in keys] for p in one["proofs"]},
        "all": one["explained"] and [round(one["explained"][k], 3) for k in keys],
        "reliefs": {
            g["setting"]: [round(g[k], 3) for k in ("ratio", "low", "high")] for g in one["reliefs"]
        },
        "segments": one["segments"],
    }


MODES = {
    "evidence": (evidence, FAULTS),
    "proof": (proof, FAULTS),
    "truth": (truth, FAULTS),
    "control": (control, CONTROLS),
    "pair": (pair, PAIRS),
    "tuner": (tuner, FAULTS),
}


def main() -> None:
    """Run the cases that the results do not have yet, and print the table."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("what", choices=(*MODES, "table"))
    asked.add_argument("--server", default="auto", help="auto, or a basedir")
    asked.add_argument("--only", default="")
    given = asked.parse_args()
    place = RESULTS / f"diagnose-{given.what}.jsonl"
    rows = [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []
    if given.what == "table":
        print(table())
        return
    label = Path(given.server).name
    done = {(r["kind"], r["server"]) for r in rows}
    measure, every = MODES[given.what]
    for name in given.only.split(",") if given.only else every:
        if (name, label) in done:
            continue
        try:
            row = measure(given.server, name)
        except (RuntimeError, subprocess.CalledProcessError) as error:
            row = {"kind": name, "error": str(error)}
        row["server"] = label
        with place.open("a") as out:
            out.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    sys.exit(main())
