"""Campaigns on a simulated host, run as `mydyno run` runs them, and their results read again.

`NAME/campaign.toml` is the spec.  The load is that of `mydyno_simulate` in process, so a
treatment states its true effect by ``load/env.SIM_EFFECT``; ``FAILS`` and ``STALLS`` name the
blocks in which its trials do so.  What time of day it was is replaced: nothing else is.
"""

import json
import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from mydyno.campaign.bench import LoadOnly
from mydyno.campaign.run_loop import CampaignRun, run
from mydyno.campaign.treatments import Environment
from mydyno.cli.recipes import SpecSource
from mydyno.cli.run_directory import RunFacts, result, save
from mydyno.journal import FileJournal
from mydyno.journal.register import RunDir
from mydyno.model import HostError, Trial
from mydyno.sample import Sampling
from mydyno.sample.sampler import START, WHERE
from mydyno.stats.result import Result
from mydyno.testing import FakeBench, FakeHost, Silent
from mydyno.testing.fakes import FakeRunning
from mydyno_simulate import WORLDS, Machine
from mydyno_simulate.__main__ import arm_of, report
from unit.sampler_file import HEAD, File

HERE = Path(__file__).parent
CASES = sorted(path.parent.name for path in HERE.glob("*/campaign.toml"))
ENVIRONMENT = Environment(8 * 2**30, 2, "mariadb", (10, 11, 6))
FACTS = {
    "host": {"kernel": "6.1.0-18-amd64", "processor": "2 of AMD EPYC 7763", "memory": "7.8 GiB"},
    "server": {"build": "MariaDB 10.11.6-MariaDB-0+deb12u1", "basedir": "/usr"},
}
LAB = "A loop device with the caps of one azure-p15 disk, burst credits empty, was the disk."
WARNING = "the load runs on the host of the server; give it a host of its own (load = ...)"
SCRIPT = "<script>document.title='owned'</script>"
_DIED = (
    "mysqld did not start: [ERROR] InnoDB: Cannot allocate memory for the buffer pool\n"
    "[ERROR] Plugin 'InnoDB' init function returned error.\n[ERROR] Aborting"
)
_HOSTILE = f"mysqld: \x1b[31mred\x1b[0m {SCRIPT} {{{{ 7*7 }}}}\n]]>--><!--"


def simulated(name: str, folder: Path) -> Result:
    """Run a case's campaign into `folder` and return what its report shows."""
    spec = HERE / name / "campaign.toml"
    source = SpecSource(spec.read_text(), spec.name, {})
    campaign = source.plan(ENVIRONMENT)
    files = RunDir(folder)
    save(
        files,
        source,
        RunFacts(spec.name, {}, ENVIRONMENT, f"mydyno run {name}.toml", ""),
        begun=False,
    )
    _save_facts(files, hostile=name == "hostile")
    journal = FileJournal(files.journal)
    died = _HOSTILE if name == "hostile" else _DIED
    kind = SampledTrial if name == "sampled" else SimulatedTrial
    host = SimulatedHost({}, lambda _: iter(()), died=died)
    bench = SimulatedBench(host, journal, trials=kind)
    run(CampaignRun(campaign, bench, files, journal, Silent()))
    journal.close()
    return replace(result(folder), started="2026-02-07T14:32:00.000+00:00")


def _save_facts(files: RunDir, *, hostile: bool) -> None:
    facts = {SCRIPT.replace("/", ""): {SCRIPT: SCRIPT}} if hostile else FACTS
    for section, values in facts.items():
        (files.facts / f"{section}.json").write_text(json.dumps(values))
    (files.facts / "lab.txt").write_text(SCRIPT if hostile else LAB)
    (files.facts / "warnings.txt").write_text(f"{SCRIPT} & co" if hostile else WARNING)


@dataclass(slots=True)
class SimulatedHost(FakeHost):
    """A host whose loads are simulated from the environment that a treatment gives them."""

    died: str = ""

    def start(self, action, *, stderr=None):
        """Start a load; raise `HostError` in the blocks that ``FAILS`` names."""
        if stderr is not None:
            stderr.touch()
        env = dict(part.split("=", 1) for part in action.argv if "=" in part)
        if env["MYDYNO_BLOCK"] in env.get("FAILS", "").split():
            raise HostError(self.died)
        return FakeRunning(_lines(env))


def _lines(env: Mapping[str, str]) -> Iterator[bytes]:
    trial = Trial(int(env["MYDYNO_TRIAL"]), "a", "w", 0, int(env["MYDYNO_SEED"]))
    arm = arm_of({"SIM_WARMUP": "exponential:0.4:3", **env})
    machine = Machine(WORLDS["bare"], {"a": arm}, trial.seed)
    machine.clock_s = float(env["MYDYNO_ELAPSED_S"])
    stalls = env["MYDYNO_BLOCK"] in env.get("STALLS", "").split()
    for line in report(machine, trial, histograms="HISTOGRAMS" in env):
        if stalls and "tps" in line:
            line["tps"] = 0.0
        yield json.dumps(line).encode() + b"\n"


_FOUND = {
    "db/alloc.library": "glibc",
    "db/block.read_ahead_kb": "128",
    "db/block.scheduler": "mq-deadline",
    "db/mysqld.innodb_buffer_pool_size": "134217728",
    "db/mysqld.innodb_flush_log_at_trx_commit": "1",
    "db/mysqld.innodb_flush_neighbors": "1",
}


def _changed(key: str, value: str) -> dict[str, str]:
    weaker = key.endswith("trx_commit")
    cost = "online" if weaker or key.startswith("db/block.") else "restart"
    change = {"key": key, "before": _FOUND[key], "after": value, "cost": cost}
    return {**change, "durability": "weaker" if weaker else "same"}


@dataclass(frozen=True, slots=True)
class SimulatedBench(FakeBench):
    """A bench without layers: all that differs between treatments is their load."""

    trials: type[LoadOnly] = LoadOnly

    def trial(self, inputs):
        return self.trials(self.host, inputs)


class SimulatedTrial(LoadOnly):
    def ready(self):
        """Save what a private bench would have changed; the load's environment has the effect."""
        settings = self.inputs.settings.items()
        changes = [_changed(k, v) for k, v in settings if k in _FOUND and v != _FOUND[k]]
        (self.inputs.folder / "changes.json").write_text(json.dumps(changes))
        return LoadOnly.ready(self)


class SampledTrial(SimulatedTrial):
    """A trial that has the file of a sampler; that of the third has no server."""

    @contextmanager
    def sampler(self) -> Iterator[Sampling]:
        """Write the sampler's file once the load has ended, from the load's own rates."""
        folder = self.inputs.folder
        (folder / WHERE).write_text('{"disk": "loop0", "interface": "lo"}')
        yield Sampling(folder)
        phase_ns = 1000 * random.Random(folder.name).randrange(200_000, 800_000)
        (folder / START).write_text(f"{HEAD['mono_ns'] + phase_ns}\n")
        lines = map(json.loads, (folder / "load.out").read_text().splitlines())
        rates = [line["tps"] for line in lines if "tps" in line]
        _write_sample(folder, rates, server=folder.name != "0002")


_HOST = (
    *((f"cpu.{mode}", "all") for mode in ("user", "nice", "system", "iowait", "irq", "softirq")),
    *((f"cpu.{mode}", "all") for mode in ("steal", "idle")),
    *((f"psi.{what}.some", "") for what in ("cpu", "io", "memory")),
    *((f"disk.{what}", "loop0") for what in ("reads", "writes", "flushes")),
    *((f"disk.{what}", "loop0") for what in ("read_bytes", "write_bytes")),
    *((f"disk.{what}_s", "loop0") for what in ("read", "write", "flush", "weighted")),
    ("net.rx_bytes", "lo"),
    ("net.tx_bytes", "lo"),
    ("probe.cpu", ""),
    *((f"process.cpu_{mode}", role) for role in ("mysqld", "load") for mode in ("user", "system")),
)
_STATUS = (
    "innodb_buffer_pool_reads",
    "innodb_buffer_pool_read_requests",
    "innodb_lsn_current",
    "innodb_pages_read",
    "innodb_pages_written",
    "innodb_row_lock_waits",
)
_LEVELS = (
    "innodb_lsn_last_checkpoint",
    "innodb_buffer_pool_pages_dirty",
    "innodb_buffer_pool_pages_total",
    "threads_running",
)
_SCALE = 1e-6  # of counters of seconds; others are integers


def _write_sample(folder: Path, rates: list[float], *, server: bool) -> None:
    """Write a file as a sampler would, a tick a second, of two cores and a disk."""
    chance = random.Random(folder.name)
    file = File().define("host", ("memory.dirty", "", "gauge", 1.0), *map(_counter, _HOST))
    if server:
        status = [(f"status.{name}", "", "counter", 1.0) for name in _STATUS]
        gauges = [(f"status.{name}", "", "gauge", 1.0) for name in _LEVELS]
        file.define("server", *status, *gauges)
    totals: dict[tuple[str, str], float] = {}
    lost = chance.randrange(len(rates) // 2, len(rates))
    for seq, rate in enumerate([rates[0], *rates]):
        second = _second(chance, rate, max(rates), stalls=seq == len(rates) // 2)
        for key, spent in second.items():
            totals[key] = totals.get(key, 0.0) + spent
        if seq != lost:
            levels = _levels(totals, rate, max(rates)) if server else {}
            levels["memory.dirty", ""] = 40_000_000 + 20_000_000 * rate / max(rates)
            seen = {key: total for key, total in totals.items() if server or key in _HOST}
            file.tick(seq, _integers(seen | levels), ("host", "server") if server else ("host",))
    file.end(len(rates)).written(folder)


def _counter(key: tuple[str, str]) -> tuple[str, str, str, float]:
    return (*key, "counter", _SCALE if _in_seconds(key) else 1.0)


def _in_seconds(key: tuple[str, str]) -> bool:
    return key in _HOST and (key[0].startswith(("cpu", "psi", "p")) or key[0].endswith("_s"))


def _integers(values: Mapping[tuple[str, str], float]) -> dict[tuple[str, str], int]:
    return {k: round(v / _SCALE) if _in_seconds(k) else round(v) for k, v in values.items()}


def _second(chance, rate, best, *, stalls):
    """Return what a second of `rate` transactions, of at most `best`, adds to each counter."""
    part = rate / best
    noise = [math.exp(chance.gauss(0, 0.08)) for _ in range(12)]
    user, system, irq = 1.02 * part * noise[0], 0.38 * part * noise[1], 0.06 * part * noise[2]
    steal = 0.03 * noise[3]
    busy = min(user + system + irq + steal, 1.97)
    reads, writes = 420 * (1.3 - part) * noise[4], 610 * noise[5]
    flushes = 95 * part * noise[6]
    wait = 0.0009 / (1.15 - min((reads + writes) / 1100, 1.1))
    cpu = {"user": user, "system": system, "softirq": irq, "steal": steal}
    cpu |= {"nice": 0.0, "irq": 0.0, "iowait": (2 - busy) * 0.6, "idle": (2 - busy) * 0.4}
    disk = {"reads": reads, "writes": writes, "flushes": flushes}
    disk |= {"read_bytes": reads * 16_384, "write_bytes": writes * 21_000}
    disk |= {"read_s": reads * wait * noise[8], "write_s": writes * wait * 1.4 * noise[9]}
    disk |= {"flush_s": flushes * (0.31 if stalls else 0.0032) * noise[10]}
    disk |= {"weighted_s": (reads + writes) * wait + 2 * noise[11]}
    asked = rate * 300
    status = (asked * 0.02, asked, rate * 9000 * noise[7], reads, writes * 0.8, 4.2 * part)
    return {
        **{(f"cpu.{mode}", "all"): spent for mode, spent in cpu.items()},
        **{(f"disk.{what}", "loop0"): spent for what, spent in disk.items()},
        ("psi.cpu.some", ""): min(part * 0.34 * noise[1], 1.0),
        ("psi.io.some", ""): min(0.55 * noise[4], 1.0),
        ("psi.memory.some", ""): 0.0,
        ("net.rx_bytes", "lo"): rate * 9_100,
        ("net.tx_bytes", "lo"): rate * 61_000,
        ("probe.cpu", ""): 0.0021 * noise[10],
        ("process.cpu_user", "mysqld"): user * 0.71,
        ("process.cpu_system", "mysqld"): system * 0.71,
        ("process.cpu_user", "load"): user * 0.26,
        ("process.cpu_system", "load"): system * 0.26,
        **{(f"status.{name}", ""): spent for name, spent in zip(_STATUS, status, strict=True)},
    }


def _levels(totals, rate, best):
    """Return the server's gauges: the checkpoint follows the log, threads the rate."""
    values = (totals["status.innodb_lsn_current", ""] * 0.7, 2300 + 900 * rate / best, 8192, 7)
    return {(f"status.{name}", ""): value for name, value in zip(_LEVELS, values, strict=True)}
