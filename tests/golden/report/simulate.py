"""Seeded numbers that look measured: warm-ups, noise, checkpoints, tails."""

import math
from statistics import NormalDist, geometric_mean, median

from mydyno.stats.result import Curve, Distribution, Estimate, Ratio, Row, TrialView


def row(name, workload, trials, effect, verdict, tail=None) -> Row:
    mine = [t for t in trials if (t.treatment, t.workload, t.status) == (name, workload, "ok")]
    value = Estimate(round(geometric_mean(t.metrics["tps"] for t in mine), 2), "/s")
    guards = {"latency_p99_s": _ratio(tail)} if tail else {}
    shown = _ratio(effect) if effect else None
    return Row(name, workload, verdict, "same", len(mine), value, shown, guards, [])


def _ratio(ends) -> Ratio:
    return Ratio(*(round(x, 4) for x in ends))


def campaign(rng, truth, works, *, blocks, span_s, tail=True):
    warm_s, length_s = span_s
    trials = []
    for block in range(blocks):
        cells = [(name, work) for work in works for name in truth]
        rng.shuffle(cells)
        for name, work in cells:
            level = truth[name] * math.exp(rng.gauss(0, 0.02) - 0.01 * block)
            curves = _curves(rng, level, length_s, warm_s, tail)
            inside = {c.name: c.values[warm_s:] for c in curves}  # one value a second
            metrics = {"tps": round(sum(inside["tps"]) / len(inside["tps"]), 2)}
            if tail:
                metrics["latency_p99_s"] = round(median(inside["latency_p99_s"]), 5)
            window = (float(warm_s), float(length_s))
            number = len(trials) + 1
            trials.append(TrialView(number, name, work, block, "ok", "", window, metrics, curves))
    return trials


def _curves(rng, level, length_s, warm_s, tail):
    """Return a warm-up, autocorrelated noise, and a checkpoint's dip now and then."""
    drift, rates, tails = 0.0, [], []
    seconds = [float(t) for t in range(1, length_s + 1)]
    phase = rng.uniform(0, 23)
    for t in seconds:
        drift = 0.7 * drift + rng.gauss(0, 0.03)
        dip = 0.72 if (t + phase) % 23 < 1 else 1.0
        warm = 1 - 0.65 * math.exp(-t / (warm_s / 4))
        rates.append(float(f"{level * warm * dip * math.exp(drift):.4g}"))
        stretch = math.exp(abs(rng.gauss(0, 0.18))) / dip**3 / warm
        tails.append(float(f"{2.1 * 16 / level * stretch:.4g}"))
    found = [Curve("tps", "/s", seconds, rates)]
    return [*found, Curve("latency_p99_s", "s", seconds, tails)] if tail else found


def gauges(rng, trial) -> list[Curve]:
    """Return what a sampler on two cores and a disk of 1100 operations a second would see.

    One second is missing, as if the sampler had been late, and a flush stalls in another.
    """
    rates = next(c.values for c in trial.curves if c.name == "tps")
    best = max(rates)
    phase = rng.uniform(0.2, 0.8)  # the sampler's second is not the load's
    found: dict[str, list[float]] = {}
    for rate in rates:
        for name, value in _second(rng, rate, best).items():
            found.setdefault(name, []).append(value)
    stall = rng.randrange(len(rates) // 2, len(rates))
    found["disk.flush_latency"][stall] = 0.31
    lost = rng.randrange(len(rates) // 2, len(rates))
    seconds = [i + phase for i in range(len(rates)) if i != lost]
    return [
        Curve(name, _UNITS.get(name, "/s"), [round(t, 3) for t in seconds], _short(values, lost))
        for name, values in found.items()
    ]


def _short(values, lost):
    return [float(f"{v:.4g}") for i, v in enumerate(values) if i != lost]


def _second(rng, rate, best):
    """Return one second of a machine that does `rate` transactions of at most `best`."""
    part = rate / best
    noise = [math.exp(rng.gauss(0, 0.08)) for _ in range(12)]
    user, system, irq = 1.02 * part * noise[0], 0.38 * part * noise[1], 0.06 * part * noise[2]
    steal = 0.03 * noise[3]
    busy = min((user + system + irq + steal), 1.97)
    iowait = (2 - busy) * 0.6
    reads, writes = 420 * (1.3 - part) * noise[4], 610 * noise[5]
    flushes = 95 * part * noise[6]
    wait = 0.0009 / (1.15 - min((reads + writes) / 1100, 1.1))
    redo = rate * 9000 * noise[7]
    return {
        "cpu.user": user,
        "cpu.system": system,
        "cpu.iowait": iowait,
        "cpu.irq": irq,
        "cpu.steal": steal,
        "cpu.idle": 2 - busy - iowait,
        "process.mysqld.cpu": (user + system) * 0.71,
        "process.load.cpu": (user + system) * 0.26,
        "disk.reads": reads,
        "disk.writes": writes,
        "disk.flushes": flushes,
        "disk.read_bytes": reads * 16_384,
        "disk.write_bytes": writes * 21_000,
        "disk.read_latency": wait * noise[8],
        "disk.write_latency": wait * 1.4 * noise[9],
        "disk.flush_latency": 0.0032 * noise[10],
        "disk.queue": (reads + writes) * wait + 2 * noise[11],
        "net.rx_bytes": rate * 9_100,
        "net.tx_bytes": rate * 61_000,
        "net.retransmits": 0.0,
        "psi.cpu": min(part * 0.34 * noise[1], 1.0),
        "psi.io": min(0.62 * noise[2], 1.0),
        "psi.memory": 0.0,
        "memory.dirty": 41e6 * noise[3],
        "innodb.hit_ratio": 1 - 0.011 * (1.3 - part) * noise[4],
        "innodb.dirty_share": 0.18 * part * noise[5],
        "innodb.checkpoint_age": 310e6 * part * noise[6],
        "innodb.redo_rate": redo,
        "innodb.reads": reads * 0.97,
        "innodb.writes": writes * 0.8,
        "innodb.row_lock_waits": 4.2 * part * noise[8],
        "threads_running": 7.4 * noise[9],
        "probe.cpu": 0.0021 * noise[10],
    }


_MODES = ("user", "system", "iowait", "irq", "steal", "idle")
_SIZES = ("disk.read_bytes", "disk.write_bytes", "net.rx_bytes", "net.tx_bytes", "innodb.redo_rate")
_UNITS = (
    dict.fromkeys((f"cpu.{mode}" for mode in _MODES), "cores")
    | dict.fromkeys((f"disk.{verb}_latency" for verb in ("read", "write", "flush")), "s")
    | dict.fromkeys(_SIZES, "B/s")
    | {
        "probe.cpu": "cores",
        "process.mysqld.cpu": "cores",
        "process.load.cpu": "cores",
        "disk.queue": "",
    }
    | {"psi.cpu": "ratio", "psi.io": "ratio", "psi.memory": "ratio", "threads_running": ""}
    | {"innodb.hit_ratio": "ratio", "innodb.dirty_share": "ratio"}
    | {"innodb.checkpoint_age": "B", "memory.dirty": "B"}
)


def distribution(treatment, workload, middle_s, count) -> Distribution:
    shares = [0.001, 0.01, *(i / 20 for i in range(1, 20)), 0.97, 0.98, 0.99, 0.995, 0.998]
    shares += [0.999, 0.9995, 0.9999, 1 - 1 / count]
    normal = NormalDist(math.log(middle_s), 0.32)
    kept = sorted({s for s in shares if s <= 1 - 1 / count})
    points = [(float(f"{math.exp(normal.inv_cdf(s)):.4g}"), s) for s in kept]
    return Distribution(treatment, workload, count, [*points, (points[-1][0] * 1.3, 1.0)])
