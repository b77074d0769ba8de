"""Seeded numbers that look measured: warm-ups, noise, checkpoints, tails."""

import math
from statistics import NormalDist, geometric_mean, median

from mydyno.analyse.result import Curve, Distribution, Estimate, Ratio, Row, TrialView


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


def distribution(treatment, workload, middle_s, count) -> Distribution:
    shares = [0.001, 0.01, *(i / 20 for i in range(1, 20)), 0.97, 0.98, 0.99, 0.995, 0.998]
    shares += [0.999, 0.9995, 0.9999, 1 - 1 / count]
    normal = NormalDist(math.log(middle_s), 0.32)
    kept = sorted({s for s in shares if s <= 1 - 1 / count})
    points = [(float(f"{math.exp(normal.inv_cdf(s)):.4g}"), s) for s in kept]
    return Distribution(treatment, workload, count, [*points, (points[-1][0] * 1.3, 1.0)])
