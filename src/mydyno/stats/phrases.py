"""The verdict in a sentence, and the messages of its guards."""

import re
from collections.abc import Mapping, Sequence
from math import log

from mydyno.stats.decide import held
from mydyno.stats.estimates import describe_lost, describe_lost_vs_baseline
from mydyno.stats.result import Comparison, Ends, Ratio, Row
from mydyno.stats.rule import HIGHER, Guards, Rule, broken_guards, known, unproven_guards

_NAMED = 5
_UNFIT = frozenset({"failed", "unstable"})
_RATES = {"tps": "throughput", "iops": "I/O rate", "qps": "query rate"}


def sentence(comparison: Comparison, rule: Rule) -> str:
    """Return one sentence that a person can repeat: who wins, by how much, with which interval."""
    if comparison.winner:
        sentences = (_winner(comparison, comparison.winner), comparison.share, comparison.soak)
        return " ".join(filter(None, sentences))
    if comparison.parts and rule.screening:
        return _screened(comparison)
    return _no_winner(comparison, rule)


def _screened(comparison: Comparison) -> str:
    """Return which factors matter, the strongest first."""
    ordered = sorted(comparison.parts, key=lambda part: -abs(log(part.effect.ratio)))
    significant = [part for part in ordered if not part.effect.low <= 1 <= part.effect.high]
    if not significant:
        return f"None of {len(ordered)} settings has a significant effect."
    named = [f"{p.factor} = {p.level} ({p.effect.ratio:.2f}x)" for p in significant[:_NAMED]]
    more = f" and {len(significant) - _NAMED} more" if len(significant) > _NAMED else ""
    return (
        f"Of {len(ordered)} settings these have the largest effects: {', '.join(named)}{more}. "
        "A screening ranks settings and proves nothing; compare the best of them in a race."
    )


def _winner(comparison: Comparison, winner: str) -> str:
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
    """Return the name of the response; loads may have one each."""
    known = [_RATES.get(part, part) for part in comparison.response.split(", ")]
    same = all(part in _RATES.values() for part in known)
    return known[0] if len(known) == 1 else "throughput" if same else " or ".join(known)


def _no_winner(comparison: Comparison, rule: Rule) -> str:
    rows = [r for r in comparison.treatments if r.verdict != "baseline"]
    if not rows:
        return f"No verdict: there is no treatment to compare {comparison.baseline} with."
    base = [r for r in comparison.treatments if r.verdict == "baseline" and r.ends.lost]
    if gone := next((r for r in base if r.ends.lost == r.ends.trials), None):
        return f"No verdict: {gone.name}, the baseline, {describe_lost(gone.ends)}."
    lost = _lost(comparison, rows)
    if all(r.effect is None for r in rows if r.verdict not in _UNFIT):
        return f"{'Keep the baseline' if lost else 'No verdict'}: {lost or _too_few(rows)}"
    return " ".join(filter(None, (_none_better(comparison, rows, rule), lost)))


def _none_better(comparison: Comparison, rows: Sequence[Row], rule: Rule) -> str:
    if rejected := [r for r in rows if _gained(r, rule) and _broken_of(r, rule)]:
        one, all_of = (len({r.name for r in some}) for some in (rejected, rows))
        guards = dict.fromkeys(_of(name) for r in rejected for name in _broken_of(r, rule))
        return (
            f"Keep the baseline: {one} of {all_of} treatments did better, but broke a guard "
            f"({', '.join(guards)})."
        )
    blocked = [r for r in rows if r.verdict == "inconclusive" and r.unevaluated]
    if blocked := [r for r in blocked if _gained(r, rule)]:
        names = dict.fromkeys(r.name for r in blocked)
        guards = dict.fromkeys(name for r in blocked for name in r.unevaluated)
        return (
            f"Keep the baseline: {', '.join(names)} did better, but these guards cannot be "
            f"evaluated: {', '.join(guards)}."
        )
    if weaker := _weaker(rows):
        return (
            f"Keep the baseline: only {', '.join(weaker)} would win, with weaker durability; "
            'to allow that, set decide.durability = "weaker" in the spec.'
        )
    seen = [r.detectable for r in rows if r.detectable is not None]
    none = f"Keep the baseline: no treatment is significantly better than {comparison.baseline}."
    if not seen:
        return none
    smallest = (max(seen) - 1) * 100
    return f"{none} A difference of {smallest:.1f} % or more would have been detected."


def _lost(comparison: Comparison, rows: Sequence[Row]) -> str:
    """Return which treatment lost the largest share of its trials, ``""`` where none failed."""
    unfit = [r for r in rows if r.ends.lost and r.verdict in _UNFIT]
    if not unfit:
        return ""
    worst = max(unfit, key=lambda r: r.ends.lost / r.ends.trials)
    ends = {r.workload: r.ends for r in comparison.treatments if r.verdict == "baseline"}
    others = {r.name for r in unfit} - {worst.name}
    more = f"; {len(others)} more failed or stalled" if others else ""
    counts = describe_lost_vs_baseline(worst.ends, ends.get(worst.workload, Ends()))
    return f"{worst.name} {counts}{more}."


def _too_few(rows: Sequence[Row]) -> str:
    if max(row.trials for row in rows) == 1:
        return "each treatment ran once; at least two runs of each are needed."
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
    return broken_guards(held(row, rule))


def failures(word: str, own: Ends, baseline: Ends) -> list[str]:
    """Return what trials that were lost mean for a treatment's verdict."""
    counts = describe_lost_vs_baseline(own, baseline)
    if word in {"failed", "unstable"}:
        return [f"{word}: it {counts}; a treatment that fails more often is never adopted"]
    return [f"it {counts}: not more often than the baseline; the verdict uses the other trials"]


def baseline_lost_trials(baseline: Ends) -> list[str]:
    """Return the warning for a baseline that lost trials."""
    return [f"the baseline {describe_lost(baseline)}: verdicts use the other trials"]


def no_ratio(response: str, zeros: int) -> list[str]:
    """Return the warning for a response that is 0 in some trials."""
    message = (
        f"{response} is 0 in {zeros} of its and the baseline's trials, so there is no ratio; "
        "decide on another response"
    )
    return [message]


def lost_trials(ends: Ends) -> list[str]:
    """Return the warning for a screening that lost trials; its ranking leaves them out."""
    if not ends.lost:
        return []
    message = (
        f"the screening {describe_lost(ends)}: the ranking uses the other trials only and does not "
        "show levels that make trials fail; look at the settings of the lost trials"
    )
    return [message]


def blocking_guards(unevaluated: Mapping[str, str]) -> list[str]:
    """Return for each guard that cannot be evaluated that it blocks the adoption, and why."""
    return [
        f"not adopted: the guard {name} cannot be evaluated ({why}); have the load report "
        f"{name} in each trial, or take the guard out of decide.guards"
        for name, why in unevaluated.items()
    ]


def unproven_warnings(guards: Guards) -> list[str]:
    """Return a warning for each guard whose interval does not lie below its margin."""
    return [
        f"{name}: {ratio.ratio:.2f} times the baseline's, but {ratio.high:.2f} is not ruled out "
        f"(margin {1 + margin:.2f}); run more blocks to decide"
        for name, (ratio, margin) in unproven_guards(guards).items()
    ]


def rejecting_guards(guards: Guards) -> list[str]:
    """Return for each broken guard its ratio and its limit."""
    return [_rejecting_guard(name, ratio, margin) for name, (ratio, margin) in guards.items()]


def _rejecting_guard(name: str, ratio: Ratio, margin: float) -> str:
    """Return one message; the ratio is shown as measured, also where higher is better."""
    allowed = 1 + margin
    if known(name) == HIGHER:
        ratio, allowed = Ratio(1 / ratio.ratio, 1 / ratio.high, 1 / ratio.low), 1 / allowed
    return (
        f"rejected for its {_of(name)} ({name}): {ratio.ratio:.2f} times the baseline's "
        f"[{ratio.low:.2f}..{ratio.high:.2f}], limit {allowed:.2f}"
    )


def waived_guards(guards: Guards) -> list[str]:
    """Return a message for each guard that is reported only, not used in the verdict."""
    return [
        f"{name}: {ratio.ratio:.2f} times the baseline's [{ratio.low:.2f}..{ratio.high:.2f}]; "
        "reported only, not used in the verdict: its slow seconds are faster than the baseline's "
        "fast ones"
        for name, (ratio, _) in guards.items()
    ]


def _of(guard: str) -> str:
    """Return the quantity of a guard, in words."""
    response = guard.removesuffix("_logsd")
    if response != guard:
        return f"spread of {_RATES.get(response, response)}"
    return re.sub(r"latency_(\w+)_s", r"\1 latency", guard)
