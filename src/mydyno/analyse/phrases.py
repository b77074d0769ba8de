"""The verdict in a sentence, and what its guards say."""

import re
from collections.abc import Mapping, Sequence
from math import log

from mydyno.analyse.direction import HIGHER, known
from mydyno.analyse.ends import beside_baseline, lost_words
from mydyno.analyse.guards import held
from mydyno.analyse.result import Comparison, Ends, Ratio, Row
from mydyno.analyse.rule import Rule
from mydyno.analyse.verdicts import Guards, broken, unshown

_NAMED = 5
_UNFIT = frozenset({"failed", "unstable"})
_RATES = {"tps": "throughput", "iops": "I/O rate", "qps": "query rate"}


def sentence(comparison: Comparison, rule: Rule) -> str:
    """Return one sentence that a person can repeat: who wins, by how much, how sure it is."""
    if comparison.winner:
        told = (_won(comparison, comparison.winner), comparison.share, comparison.soak)
        return " ".join(filter(None, told))
    if comparison.parts and rule.screening:
        return _screened(comparison)
    return _leave(comparison, rule)


def _screened(comparison: Comparison) -> str:
    """Return which factors matter, the strongest first."""
    ordered = sorted(comparison.parts, key=lambda part: -abs(log(part.effect.ratio)))
    sure = [part for part in ordered if not part.effect.low <= 1 <= part.effect.high]
    if not sure:
        return f"None of {len(ordered)} settings was shown to matter."
    told = ", ".join(f"{p.factor} = {p.level} ({p.effect.ratio:.2f}x)" for p in sure[:_NAMED])
    more = f" and {len(sure) - _NAMED} more" if len(sure) > _NAMED else ""
    return (
        f"Of {len(ordered)} settings these matter most: {told}{more}. A screen ranks, it does not "
        "prove: race the best of them."
    )


def _won(comparison: Comparison, winner: str) -> str:
    rows = [r for r in comparison.treatments if r.name == winner and r.verdict == "adopt"]
    row = max(rows, key=lambda r: abs(log(r.effect.ratio)) if r.effect else 0.0)
    if row.effect is None:
        return f"{winner} wins."
    workloads = f" under {row.workload}" if len(comparison.winners) > 1 else ""
    return (
        f"{winner} gives {row.effect.ratio:.2f} times the {_what(comparison)} of "
        f"{comparison.baseline}{workloads} (95 % interval {row.effect.low:.2f} to "
        f"{row.effect.high:.2f}, {row.trials} trials each){_latency(row)}."
    )


def _latency(row: Row) -> str:
    guard = row.guards.get("latency_p99_s")
    return f", at {guard.ratio:.2g} times its p99 latency" if guard else ""


def _what(comparison: Comparison) -> str:
    """Return the response in plain words; loads may have one each."""
    known = [_RATES.get(part, part) for part in comparison.response.split(", ")]
    same = all(part in _RATES.values() for part in known)
    return known[0] if len(known) == 1 else "throughput" if same else " or ".join(known)


def _leave(comparison: Comparison, rule: Rule) -> str:
    rows = [r for r in comparison.treatments if r.verdict != "baseline"]
    if not rows:
        return f"No verdict: there is nothing to compare {comparison.baseline} with."
    base = [r for r in comparison.treatments if r.verdict == "baseline" and r.ends.lost]
    if gone := next((r for r in base if r.ends.lost == r.ends.trials), None):
        return f"No verdict: {gone.name}, the baseline, {lost_words(gone.ends)}."
    lost = _lost(comparison, rows)
    if all(r.effect is None for r in rows if r.verdict not in _UNFIT):
        return f"{'Keep the baseline' if lost else 'No verdict'}: {lost or _too_few(rows)}"
    return " ".join(filter(None, (_none_better(comparison, rows, rule), lost)))


def _none_better(comparison: Comparison, rows: Sequence[Row], rule: Rule) -> str:
    if spoiled := [r for r in rows if _gained(r, rule) and _broken_of(r, rule)]:
        one, all_of = (len({r.name for r in some}) for some in (spoiled, rows))
        guards = dict.fromkeys(_of(name) for r in spoiled for name in _broken_of(r, rule))
        return (
            f"Keep the baseline: {one} of {all_of} treatments did better, and broke a guard "
            f"({', '.join(guards)})."
        )
    blocked = [r for r in rows if r.verdict == "inconclusive" and r.unevaluated]
    if blocked := [r for r in blocked if _gained(r, rule)]:
        names = dict.fromkeys(r.name for r in blocked)
        guards = dict.fromkeys(name for r in blocked for name in r.unevaluated)
        return (
            f"Keep the baseline: {', '.join(names)} did better, but could not be held to what was "
            f"asked: {', '.join(guards)} cannot be evaluated."
        )
    if weaker := _weaker(rows):
        return (
            f"Keep the baseline: only {', '.join(weaker)} would win, by giving up durability; "
            'the spec would have to say durability = "weaker".'
        )
    seen = [r.detectable for r in rows if r.detectable is not None]
    told = f"Keep the baseline: no treatment was shown to beat {comparison.baseline}."
    if not seen:
        return told
    return f"{told} A difference of {(max(seen) - 1) * 100:.1f} % or more would have been seen."


def _lost(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return which treatment lost the largest share of its trials, ``""`` where none failed."""
    unfit = [r for r in rows if r.ends.lost and r.verdict in _UNFIT]
    if not unfit:
        return ""
    worst = max(unfit, key=lambda r: r.ends.lost / r.ends.trials)
    ends = {r.workload: r.ends for r in comparison.treatments if r.verdict == "baseline"}
    others = {r.name for r in unfit} - {worst.name}
    more = f"; {len(others)} more failed or stalled" if others else ""
    return f"{worst.name} {beside_baseline(worst.ends, ends.get(worst.workload, Ends()))}{more}."


def _too_few(rows: Sequence[Row]) -> str:
    if max(row.trials for row in rows) == 1:
        return "each ran once only, and a single run each proves next to nothing."
    return "too few trials have finished."


def _weaker(rows: Sequence[Row]) -> list[str]:
    adopted = [r.name for r in rows if r.verdict == "adopt" and r.durability == "weaker"]
    return list(dict.fromkeys(adopted))


def _gained(row: Row, rule: Rule) -> bool:
    """Return whether a treatment is shown to be better than the baseline."""
    ends = (row.effect.low, row.effect.high) if row.effect else (1.0,)
    return min(rule.gain(log(end), row.workload) for end in ends) > 0


def _broken_of(row: Row, rule: Rule) -> Guards:
    """Return the guards for which a treatment was rejected."""
    if row.verdict != "reject":
        return {}
    return broken(held(row, rule))


def failures(word: str, own: Ends, baseline: Ends) -> list[str]:
    """Return what trials that were lost mean for a treatment's verdict."""
    counts = beside_baseline(own, baseline)
    if word in {"failed", "unstable"}:
        return [f"{word}: it {counts}; a treatment that fails more often is never adopted"]
    return [f"it {counts}: no more often, so the other trials decide"]


def unreliable(baseline: Ends) -> list[str]:
    """Return the warning for a baseline that lost trials."""
    return [f"the baseline {lost_words(baseline)}: verdicts rest on the others"]


def no_ratio(response: str, zeros: int) -> list[str]:
    """Return the warning for a response that is 0 in some trials."""
    told = (
        f"{response} is 0 in {zeros} of its and the baseline's trials, which has no ratio: decide "
        "on another response"
    )
    return [told]


def lost_runs(ends: Ends) -> list[str]:
    """Return the warning for a screen that lost runs, which its ranking then leaves out."""
    if not ends.lost:
        return []
    told = (
        f"the screen {lost_words(ends)}: the ranking is of the other runs only; a level that makes "
        "runs fail is not ranked by what it does; look at the settings of the lost runs"
    )
    return [told]


def blocking(unevaluated: Mapping[str, str]) -> list[str]:
    """Return for each guard of which nothing can be said that it blocks the adoption, and why."""
    return [
        f"not adopted: the guard {name} cannot be evaluated ({why}); have the load report "
        f"{name} in each trial, or take the guard out of decide.guards"
        for name, why in unevaluated.items()
    ]


def unproven(guards: Guards) -> list[str]:
    """Return a warning for each guard whose interval does not lie below its margin."""
    return [
        f"{name}: {ratio.ratio:.2f} times the baseline's, but {ratio.high:.2f} is not ruled out "
        f"(margin {1 + margin:.2f}); more blocks would tell"
        for name, (ratio, margin) in unshown(guards).items()
    ]


def rejecting(guards: Guards) -> list[str]:
    """Return for each broken guard by how much it is."""
    return [_rejecting(name, ratio, margin) for name, (ratio, margin) in guards.items()]


def _rejecting(name: str, ratio: Ratio, margin: float) -> str:
    """Return one; of what should be high a guard's ratio is turned, and is shown as measured."""
    allowed = 1 + margin
    if known(name) == HIGHER:
        ratio, allowed = Ratio(1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low), 1 / allowed
    return (
        f"rejected for its {_of(name)} ({name}): {ratio.ratio:.2f} times the baseline's "
        f"[{ratio.low:.2f}..{ratio.high:.2f}], where {allowed:.2f} is allowed"
    )


def harmless(guards: Guards) -> list[str]:
    """Return what is said of guards that are not asked for."""
    return [
        f"{name}: {ratio.ratio:.2f} times the baseline's [{ratio.low:.2f}..{ratio.high:.2f}]; "
        "reported only, not used in the verdict: its slow seconds still do more than the "
        "baseline's fast ones"
        for name, (ratio, _) in guards.items()
    ]


def _of(guard: str) -> str:
    """Return what a guard looks at, in plain words."""
    response = guard.removesuffix("_logsd")
    if response != guard:
        return f"spread of {_RATES.get(response, response)}"
    return re.sub(r"latency_(\w+)_s", r"\1 latency", guard)
