"""Diagnoses of real faults, by evidence alone and by doses: `make bench-diagnose-real`.

Each case is a spec with one planted fault, and the same without it: a case counts only where taking
the fault away raises throughput by a tenth, else nothing of it limits the load.  Rivals read the
same figures.  Rows are written as they come; a run again goes on where it was cut off.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from decisions_table import share
from mydyno.campaign.doses import STALLED, STEADY
from mydyno.cli.analysis import recorded, reopen
from mydyno.cli.why import threads_of
from mydyno.diagnose import LoadEvidence, account, suspects
from mydyno.journal import outcomes
from mydyno.journal.register import RunDir
from mydyno.model import Figures
from mydyno.sample.figures import figures

HERE = Path(__file__).parent
MYDYNO = str(Path(sys.executable).with_name("mydyno"))
_WINDOW = "[protocol]\nwarmup_s = 5\nwindow_s = 15\nblocks = 1\n"
_LAB = 'device = {{ lab = "loop", size = "3G"{device} }}'
SMALL, LARGE = "32M", "512M"
VALID, CLOSES = 1.1, 0.03

# name: (right limits, device, settings with the fault, settings without it, load)
Fault = tuple[tuple[str, ...], str, Mapping[str, str], Mapping[str, str] | str, str]
RW = """script = "oltp_read_write"
tables = 4
table_size = 150000
threads = [16]
options = { rand_type = "uniform" }"""
RO = RW.replace("read_write", "read_only")
POINT = RW.replace("oltp_read_write", "oltp_point_select")
UPDATE = RW.replace("oltp_read_write", "oltp_update_index").replace("[16]", "[4]")
POOL = "innodb_buffer_pool_size"
FAULTS: dict[str, Fault] = {
    "io-cap": (("disk_ios", "pool_size"), ', class = "aws-gp3"', {POOL: SMALL}, {POOL: LARGE}, RW),
    "io-cap-weak": (
        ("disk_ios", "pool_size"),
        ', class = "aws-gp3"',
        {POOL: "128M"},
        {POOL: LARGE},
        RO,
    ),
    "read-latency": (
        ("disk_latency", "pool_size"),
        ", read_latency_us = 3000",
        {POOL: SMALL},
        {POOL: LARGE},
        RO,
    ),
    "flush-latency": (
        ("flush_latency",),
        ", flush_latency_us = 4000",
        {POOL: LARGE},
        {POOL: LARGE, "innodb_flush_log_at_trx_commit": "2"},
        UPDATE,
    ),
    "flush-latency-weak": (
        ("flush_latency",),
        ", flush_latency_us = 700",
        {POOL: LARGE},
        {POOL: LARGE, "innodb_flush_log_at_trx_commit": "2"},
        UPDATE,
    ),
    "cpu": (("server_cpu",), "", {POOL: LARGE}, "threads", RO),
    "one-connection": (
        ("one_thread", "server_cpu", "load_idle"),
        "",
        {POOL: LARGE},
        "threads up",
        RO.replace("[16]", "[1]"),
    ),
    "rate": (
        ("load_idle",),
        "",
        {POOL: LARGE},
        "rate",
        RO + "\nrate = 60",
    ),
    "link": (
        ("link_rate",),
        "",
        {POOL: LARGE, "link.rate": "30mbit"},
        {POOL: LARGE, "link.rate": "1gbit"},
        RO,
    ),
    "link-weak": (
        ("link_rate",),
        "",
        {POOL: LARGE, "link.rate": "80mbit"},
        {POOL: LARGE, "link.rate": "1gbit"},
        RO,
    ),
    "far": (
        ("round_trips",),
        "",
        {POOL: LARGE, "link.delay": "4ms"},
        {POOL: LARGE, "link.delay": "0us"},
        RO,
    ),
    "far-weak": (
        ("round_trips",),
        "",
        {POOL: LARGE, "link.delay": "1ms"},
        {POOL: LARGE, "link.delay": "0us"},
        RO,
    ),
    "hot-row": (
        ("row_locks",),
        ", flush_latency_us = 1000",
        {POOL: LARGE},
        "rows",
        UPDATE.replace("150000", "1").replace("tables = 4", "tables = 1").replace("[4]", "[16]"),
    ),
    "redo-size": (
        ("redo_size", "flushing", "disk_ios"),
        ', class = "aws-gp3"',
        {POOL: LARGE, "innodb_log_file_size": "8M"},
        {POOL: LARGE, "innodb_log_file_size": "512M"},
        UPDATE.replace("[4]", "[16]").replace("update_index", "update_non_index"),
    ),
    "table-cache": (
        ("table_cache",),
        "",
        {POOL: LARGE, "table_open_cache": "10"},
        {POOL: LARGE, "table_open_cache": "2000"},
        POINT.replace("tables = 4", "tables = 64").replace("150000", "2000"),
    ),
    "connect": (
        ("connects",),
        "",
        {POOL: LARGE},
        "reconnect",
        POINT.replace("{ rand_type", "{ reconnect = 1, rand_type"),
    ),
    "temporary": (
        ("temporary_tables",),
        "",
        {POOL: LARGE, "tmp_table_size": "1K", "max_heap_table_size": "16K"},
        {POOL: LARGE, "tmp_table_size": "64M", "max_heap_table_size": "64M"},
        RO,
    ),
    "sort-buffer": (
        ("sort_buffer",),
        "",
        {POOL: LARGE, "sort_buffer_size": "33M"},
        {POOL: LARGE, "sort_buffer_size": "256K"},
        RO,
    ),
}
FAR, WIDE, IN_MEMORY, LAZY = (
    {"link.delay": "0us"},
    {"link.rate": "1gbit"},
    {POOL: LARGE},
    {"innodb_flush_log_at_trx_commit": "2"},
)
# name: (the doses of both limits, device, settings with both, what takes each away, load)
Pair = tuple[tuple[str, str], str, Mapping[str, str], Sequence[Mapping[str, str]], str]
READS, FLUSHES, IOS = ", read_latency_us = {}", ", flush_latency_us = {}", ', class = "aws-gp3"'


def _far_and_flush(delay: str, flush_us: int) -> Pair:
    settings = {POOL: LARGE, "link.delay": delay}
    doses = ("link.delay", "disk.flush_latency")
    return doses, FLUSHES.format(flush_us), settings, (FAR, LAZY), UPDATE


def _far_and_read(delay: str, read_us: int) -> Pair:
    settings = {POOL: SMALL, "link.delay": delay}
    doses = ("link.delay", "disk.read_latency")
    return doses, READS.format(read_us), settings, (FAR, IN_MEMORY), RO.replace("[16]", "[4]")


def _rate_and_far(rate: str, delay: str) -> Pair:
    settings = {POOL: LARGE, "link.rate": rate, "link.delay": delay}
    return ("link.rate", "link.delay"), "", settings, (WIDE, FAR), RO


def _rate_and_read(rate: str, read_us: int) -> Pair:
    settings = {POOL: SMALL, "link.rate": rate}
    doses = ("link.rate", "disk.read_latency")
    return doses, READS.format(read_us), settings, (WIDE, IN_MEMORY), RO


def _read_and_flush(read_us: int, flush_us: int) -> Pair:
    device = READS.format(read_us) + FLUSHES.format(flush_us)
    doses = ("disk.read_latency", "disk.flush_latency")
    return doses, device, {POOL: SMALL}, (IN_MEMORY, LAZY), UPDATE


def _disk_and_far(delay: str) -> Pair:
    settings = {POOL: SMALL, "link.delay": delay}
    return ("disk.rate", "link.delay"), IOS, settings, (IN_MEMORY, FAR), RO


def _disk_and_rate(rate: str) -> Pair:
    settings = {POOL: SMALL, "link.rate": rate}
    return ("disk.rate", "link.rate"), IOS, settings, (IN_MEMORY, WIDE), RO


PAIRS: dict[str, Pair] = {
    "far+flush 1:1": _far_and_flush("4ms", 4000),
    "far+flush 3:1": _far_and_flush("4ms", 1300),
    "far+flush 1:3": _far_and_flush("1.3ms", 4000),
    "far+read 1:1": _far_and_read("2ms", 2000),
    "far+read 3:1": _far_and_read("4ms", 1300),
    "far+read 1:3": _far_and_read("1ms", 3000),
    "rate+far 1:1": _rate_and_far("80mbit", "4ms"),
    "rate+far 3:1": _rate_and_far("60mbit", "4ms"),
    "rate+far 1:3": _rate_and_far("80mbit", "6ms"),
    "rate+read 1:1": _rate_and_read("80mbit", 3000),
    "rate+read 3:1": _rate_and_read("60mbit", 3000),
    "rate+read 1:3": _rate_and_read("80mbit", 4500),
    "read+flush 1:1": _read_and_flush(3000, 4000),
    "read+flush 3:1": _read_and_flush(3000, 1300),
    "read+flush 1:3": _read_and_flush(1300, 5000),
    "disk+far 1:1": _disk_and_far("4ms"),
    "disk+far 3:1": _disk_and_far("2.5ms"),
    "disk+far 1:3": _disk_and_far("6ms"),
    "disk+rate 1:1": _disk_and_rate("80mbit"),
    "disk+rate 3:1": _disk_and_rate("120mbit"),
}
RATES = {  # transactions a second, far below what two cores do: nothing of the host limits them
    "healthy": (RO, (20, 35, 50, 70, 90)),
    "points": (POINT, (200, 500, 1000, 2000, 3000)),
    "writes": (RW, (5, 10, 20, 30, 40)),
    "updates": (UPDATE, (20, 50, 100, 200, 300)),
}
CONTROLS: dict[str, tuple[str, Mapping[str, str], str]] = {
    f"{name}-{rate}": ("", {POOL: LARGE}, f"{load}\nrate = {rate}")
    for name, (load, rates) in RATES.items()
    for rate in rates
}


def spec(server: str, device: str, arms: Mapping[str, Mapping[str, str]], load: str) -> str:
    """Return a spec of these treatments."""
    made = ["[stack]", f'server = "{server}"', _LAB.format(device=device)]
    for name, settings in arms.items():
        made.append(f"[treatments.{name}]")
        if "5.6" not in server:
            made.append('"mysqld.innodb_flush_method" = "O_DIRECT"')
        if any(key.startswith("link.") for key in settings):
            made += ['"net.address" = "lab"', '"net.transport" = "tcp"']
        for key, value in settings.items():
            made.append(f'"{key if key.startswith("link.") else f"mysqld.{key}"}" = "{value}"')
    made += ["[workloads.w]", 'tool = "sysbench-oltp"', load]
    return "\n".join(made) + f'\n[design]\nkind = "blocks"\n{_WINDOW}[decide]\nbaseline = "FAULT"\n'


def without(relief: str, settings: Mapping[str, str], load: str) -> tuple[Mapping[str, str], str]:
    """Return the settings and the load without a fault of the load's."""
    match relief:
        case "rate":
            return settings, load.partition("\nrate")[0]
        case "rows":
            return settings, load.replace("table_size = 1\n", "table_size = 150000\n")
        case "reconnect":
            return settings, load.replace("reconnect = 1, ", "")
        case "threads up":
            return settings, load.replace("[1]", "[16]")
    return settings, load


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
    found = account(noted.means, threads_of(campaign.workloads[first.trial.workload]))
    suspects(LoadEvidence.of(noted, found))
    return {
        part: {k: round(v, 6) for k, v in sorted(getattr(made, part).items()) if k in kept}
        for part, kept in (
            ("means", noted.means.seen),
            ("spread", {"disk.reads"}),
            ("rise", {"status.innodb_pages_read"}),
        )
    }


def evidence(server: str, name: str) -> dict[str, Any]:
    """Run a fault and the same without it; return what the evidence suggests."""
    right, device, settings, relief, load = FAULTS[name]
    healthy, calm = (relief, load) if isinstance(relief, dict) else without(relief, settings, load)
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        folder = Path(made)
        (folder / "a").mkdir()
        (folder / "b").mkdir()
        arms = {"FAULT": settings, "RELIEF": healthy}
        if calm == load and relief != "threads":
            found = ran(spec(server, device, arms, load), folder / "a")
            pair = [next(d for d in found if d["treatment"] == name) for name in arms]
        elif relief == "threads":
            twice = {"FAULT": settings, "AGAIN": settings}
            found = ran(spec(server, device, twice, load), folder / "a")
            pair = [found[0], {**found[0], "throughput": 2 * found[0]["throughput"]}]
        else:
            arms = {"FAULT": settings, "AGAIN": settings}
            pair = [
                ran(spec(server, device, arms, load), folder / "a")[0],
                ran(spec(server, device, arms, calm), folder / "b")[0],
            ]
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


def dosed(server: str, device: str, settings: Mapping[str, str], load: str) -> dict[str, Any]:
    """Return the diagnosis by doses of one treatment, with its segments."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        text = spec(server, device, {"FAULT": settings, "AGAIN": settings}, load)
        (one,) = ran(text, Path(made), "diagnose", "--treatment", "FAULT")
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
        lines = []
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):  # a process may end meanwhile
                lines.append(one.read_bytes().decode(errors="replace").split("\0"))
        if any(words[0].endswith("sysbench") and "run" in words for words in lines):
            files = [
                w.partition("=")[2]
                for line in lines
                for w in line
                if "--defaults-file=/var/tmp/mydyno-" in w
            ]
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
    place = HERE / "results" / f"diagnose-{given.what}.jsonl"
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


LINES = {  # the limits that each line of an account would be blamed for
    "server_cpu": {"server_cpu"},
    "server_run_queue": {"server_cpu"},
    "disk_read": {"disk_ios", "disk_latency", "pool_size"},
    "disk_write": {"disk_ios", "flushing", "redo_size"},
    "log": {"flush_latency"},
    "latch": {"latches"},
    "row_lock": {"row_locks"},
    "think": {"load_idle"},
    "network": {"link_rate", "round_trips"},
}
RESOURCES = {"cpu": {"server_cpu"}, "disk": {"disk_ios", "pool_size"}, "net": {"link_rate"}}
USED = 0.7  # of a resource: the usual alarm of the USE method


def utilisations(row: Mapping[str, Any]) -> dict[str, float]:
    """Return the used share of each resource whose capacity is known."""
    m = row["figures"]["means"]
    found = {"cpu": 1 - m.get("cpu.idle:all", 0.0) / 2}
    if cap := m.get("disk.cap_ios"):
        found["disk"] = (m.get("disk.reads", 0.0) + m.get("disk.writes", 0.0)) / cap
    if cap := m.get("net.capacity"):
        found["net"] = max(m.get("net.rx_bytes", 0.0), m.get("net.tx_bytes", 0.0)) / cap
    return found


def rivals(row: Mapping[str, Any]) -> dict[str, set[str]]:
    """Return what simpler rules would blame, on the same figures."""
    used = utilisations(row)
    highest = max(used, key=lambda name: used[name])
    beyond = [name for name in ("cpu", "disk", "net") if used.get(name, 0.0) > USED]
    return {
        "largest line of the account": LINES.get(row["largest"], set()),
        "highest utilisation": RESOURCES[highest],
        "USE, first above 70 %": RESOURCES[beyond[0]] if beyond else set(),
        "always the CPU": {"server_cpu"},
    }


def again(row: dict[str, Any]) -> dict[str, Any]:
    """Return a case as the limits of this version judge its figures."""
    kept = row["figures"]
    seen = Figures(kept["means"], kept["spread"], kept["rise"])
    found = account(seen.means, float(round(sum(row["lines"].values()))))
    judged = suspects(LoadEvidence.of(seen, found))
    names = [suspect.limit for suspect in judged.suspects]
    largest = max(found.lines, key=lambda line: line.connections).state
    right = list(FAULTS[row["kind"]][0])
    kept = {
        "right": right,
        "largest": largest,
        "closes": abs(found.gap) / found.n,
        "unknown": abs(found.unknown) / found.n,
        "doubts": found.doubts,
    }
    return {**row, "suspects": names, "answer": judged.answer, **kept}


def advised(valid: Sequence[Mapping[str, Any]]) -> str:
    """Return how often the first, or one of the first three, of MySQLTuner's advice is right."""
    cases = {(r["kind"], r["server"]) for r in valid}
    rows = [r for r in kept_rows("tuner") if (r["kind"], r["server"]) in cases]
    if not rows:
        return "MySQLTuner: not run"
    first = sum(bool({*r["suspects"][:1]} & {*r["right"]}) for r in rows)
    three = sum(bool({*r["suspects"][:3]} & {*r["right"]}) for r in rows)
    return f"MySQLTuner: {share(first, len(rows))}, top-3 {share(three, len(rows))}"


def kept_rows(what: str) -> list[dict[str, Any]]:
    """Return the rows of a mode's results that are no errors."""
    place = HERE / "results" / f"diagnose-{what}.jsonl"
    found = [json.loads(line) for line in place.read_text().splitlines()] if place.exists() else []
    return [row for row in found if "error" not in row]


def paired() -> list[str]:
    """Return how often both limits of a pair are named, by proof and by evidence."""
    rows = kept_rows("pair")
    valid = [r for r in rows if min(r["validated"]) >= VALID]
    lines = []
    for row in valid:
        verdicts = {name.partition(" ")[0]: verdict for name, verdict in row["verdicts"].items()}
        named = [dose for dose in row["doses"] if verdicts.get(dose) in {"the_limit", "a_limit"}]
        first = {dose for doses in row["expected"][:3] for dose in doses}
        row |= {"named": len(named), "suspected": len(first & {*row["doses"]})}
        lines.append(
            f"| {row['kind']} | {', '.join(f'{v:.2f}' for v in row['validated'])} | "
            f"{'; '.join(f'{k} {e[0]} [{e[1]}..{e[2]}]' for k, e in row['proofs'].items())} | "
            f"{row['all']} | {row['named']} | {row['suspected']} |"
        )
    both, first = (sum(r[k] == 2 for r in valid) for k in ("named", "suspected"))
    one = sum(r["named"] >= 1 for r in valid)
    found = (
        f"{len(rows)} pairs, {len(valid)} validated; both proven {share(both, len(valid))}, one "
        f"{share(one, len(valid))}; both among the first three suspects {share(first, len(valid))}"
    )
    return [found, *lines]


def controlled() -> str:
    """Return in how many controls a limit was proven, which is wrong."""
    rows = kept_rows("control")
    wrong = sum(bool(row["proven"]) for row in rows)
    return f"{len(rows)} controls, a limit proven in {share(wrong, len(rows))}"


def table() -> str:
    """Return the share of right answers, by evidence and by rivals, and the proofs."""
    rows = [again(r) for r in kept_rows("evidence")]
    valid = [r for r in rows if r["validated"] >= VALID]
    first = [r for r in valid if r["suspects"][:1] and r["suspects"][0] in r["right"]]
    three = [r for r in valid if {*r["suspects"][:3]} & {*r["right"]}]
    closes = [r for r in rows if r["unknown"] <= CLOSES]
    agree = [r for r in rows if r["closes"] <= CLOSES]
    lines = [
        f"{len(rows)} cases, {len(valid)} validated (taking the fault away gives a tenth and more)",
        f"top-1 {share(len(first), len(valid))}, top-3 {share(len(three), len(valid))}",
        f"the known states add up to N within 3 %: {share(len(closes), len(rows))}",
        f"looks and the kernel's count of CPUs agree within 3 %: {share(len(agree), len(rows))}",
    ]
    for name in rivals(rows[0]):
        hits = sum(bool(rivals(r)[name] & {*r["right"]}) for r in valid)
        lines.append(f"{name}: {share(hits, len(valid))}")
    lines.append(advised(valid))
    lines += [
        f"| {r['kind']} | {r['server']} | {r['validated']:.2f} | "
        f"{', '.join(r['suspects'][:3]) or 'none'} | {r['answer']} | {r['unknown']:.1%} | "
        f"{r['closes']:.1%} |"
        for r in rows
    ]
    lines += [controlled(), *paired()]
    for row in kept_rows("proof"):
        lines.append(json.dumps({k: v for k, v in row.items() if k != "segments"}))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
